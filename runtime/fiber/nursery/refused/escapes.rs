//! A handle does not leave its nursery.
pub fn leak() {
    let mut kept = None;
    fiber_nursery::nursery(|n| {
        kept = Some(n.spawn(|| 1));
    });
}
