//! Waiting for the end of a run.

#[cfg(not(shuttle))]
use std::sync::{Condvar, Mutex};

#[cfg(shuttle)]
use shuttle::sync::{Condvar, Mutex};
use std::any::Any;

/// How a run ended.
type End = Result<(), Box<dyn Any + Send>>;

/// The end of a run: once every CPU has stopped, or a thread has panicked.
pub struct Latch {
    state: Mutex<(usize, Option<End>)>,
    changed: Condvar,
}

impl Latch {
    /// A run on so many CPUs.
    pub fn new(cpus: usize) -> Self {
        Self { state: Mutex::new((cpus, None)), changed: Condvar::new() }
    }

    /// A CPU has stopped.
    pub fn stopped(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 -= 1;
        if state.0 == 0 && state.1.is_none() {
            state.1 = Some(Ok(()));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A thread has panicked.
    pub fn panicked(&self, why: Box<dyn Any + Send>) {
        let mut state = self.state.lock().unwrap();
        state.1.get_or_insert(Err(why));
        drop(state);
        self.changed.notify_all();
    }

    /// Waits for the end; panics as a thread did.
    pub fn wait(&self) {
        let mut state = self.state.lock().unwrap();
        loop {
            match state.1.take() {
                Some(Ok(())) => return,
                Some(Err(why)) => {
                    drop(state);
                    std::panic::resume_unwind(why);
                }
                None => state = self.changed.wait(state).unwrap(),
            }
        }
    }
}
