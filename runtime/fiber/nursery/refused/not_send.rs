//! A fiber may run on any worker: what it captures has to be Send.
pub fn share(n: &'static fiber_nursery::Nursery<'static, 'static>) {
    let shared = std::rc::Rc::new(1);
    n.spawn(move || *shared);
}
