//! What is spawned into the root borrows nothing.
pub fn leak() {
    let text = String::from("of this function");
    fiber_nursery::spawn({
        let text = &text;
        move || text.len()
    });
}
