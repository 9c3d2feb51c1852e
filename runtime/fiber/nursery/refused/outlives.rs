//! A fiber cannot outlive what it borrows.
pub fn leak() {
    fiber_nursery::nursery(|n| {
        let local = String::from("gone before the nursery ends");
        n.spawn(|| local.len());
    });
}
