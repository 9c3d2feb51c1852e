//! An end of a channel is only Send if its values are.
pub fn give(n: &'static fiber_nursery::Nursery<'static, 'static>) {
    let (sender, _receiver) = fiber_chan::bounded::<std::rc::Rc<u8>>(1);
    n.spawn(move || drop(sender));
}
