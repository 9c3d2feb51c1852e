//! What a fiber has selected is completed by it.
pub fn give(
    n: &'static fiber_nursery::Nursery<'static, 'static>,
    chosen: fiber_chan::SelectedOperation<'static>,
) {
    n.spawn(move || drop(chosen));
}
