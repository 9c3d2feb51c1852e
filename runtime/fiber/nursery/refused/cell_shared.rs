//! Fibers run at once: what they share has to be Sync.
pub fn share() {
    let cell = std::cell::Cell::new(1);
    fiber_nursery::nursery(|n| {
        n.spawn(|| cell.set(2));
    });
}
