//! Two fibers do not write one place.
pub fn race() {
    let mut count = 0;
    fiber_nursery::nursery(|n| {
        n.spawn(|| count += 1);
        n.spawn(|| count += 1);
    });
}
