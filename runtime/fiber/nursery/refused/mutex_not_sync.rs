//! A mutex shares only what may go from one to the other.
pub fn share() {
    let mutex = fiber_rt::Mutex::new(std::rc::Rc::new(1));
    fiber_nursery::nursery(|n| {
        n.spawn(|| drop(mutex.lock()));
    });
}
