//! A guard stays with the fiber that locked.
pub fn give<'a>(n: &'a fiber_nursery::Nursery<'a, 'a>, mutex: &'a fiber_rt::Mutex<u32>) {
    let guard = mutex.lock();
    n.spawn(move || *guard);
}
