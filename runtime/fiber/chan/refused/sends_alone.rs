//! A `select!` of sends that waits says what it does when it is cancelled.
pub fn either(one: &fiber_chan::Sender<u8>, two: &fiber_chan::Sender<u8>) {
    fiber_chan::select! {
        send(one, 1) -> sent => drop(sent),
        send(two, 2) -> sent => drop(sent),
    }
}
