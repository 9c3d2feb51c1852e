//! A fiber of an outer nursery does not borrow from within an inner one's block.
pub fn leak() {
    fiber_nursery::nursery(|outer| {
        let local = String::from("gone before the outer nursery ends");
        fiber_nursery::nursery(|inner| {
            inner.spawn(|| local.len());
            outer.spawn(|| local.len());
        });
    });
}
