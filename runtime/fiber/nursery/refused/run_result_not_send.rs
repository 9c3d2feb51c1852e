//! And its result comes from there.
pub fn take(runtime: &fiber_rt::Runtime) {
    runtime.run(|| std::rc::Rc::new(1));
}
