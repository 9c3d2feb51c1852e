//! What `run` runs goes to a worker.
pub fn give(runtime: &fiber_rt::Runtime) {
    let shared = std::rc::Rc::new(1);
    runtime.run(move || drop(shared));
}
