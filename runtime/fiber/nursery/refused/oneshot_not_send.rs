//! Nor that of a channel for one value.
pub fn give(n: &'static fiber_nursery::Nursery<'static, 'static>) {
    let (_sender, receiver) = fiber_chan::oneshot::channel::<std::rc::Rc<u8>>();
    n.spawn(move || drop(receiver));
}
