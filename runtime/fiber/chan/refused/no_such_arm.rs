//! An arm is one of those there are.
pub fn wait(receiver: &fiber_chan::Receiver<u8>) {
    fiber_chan::select! {
        receive(receiver) -> value => drop(value),
    }
}
