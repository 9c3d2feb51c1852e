//! An operation that was selected is completed by whoever selected it.
pub fn give<'a>(
    n: &'a fiber_nursery::Nursery<'a, 'a>,
    select: &'a mut fiber_chan::Select<'a>,
    receiver: &'a fiber_chan::Receiver<u8>,
) {
    if let Ok(chosen) = select.select() {
        n.spawn(move || drop(chosen.recv(receiver)));
    }
}
