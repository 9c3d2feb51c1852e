//! So has its result.
pub fn share(n: &'static fiber_nursery::Nursery<'static, 'static>) {
    n.spawn(|| std::rc::Rc::new(1));
}
