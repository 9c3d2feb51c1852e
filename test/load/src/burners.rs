//! Host threads that do nothing but take CPU time, so that the emulator's have to wait for theirs.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that burn until they are dropped.
pub struct Burners {
    are_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Burners {
    /// Starts `count` of them.
    pub fn start(count: usize) -> Burners {
        let are_over = Arc::new(AtomicBool::new(false));
        let burn = || {
            let are_over = Arc::clone(&are_over);
            thread::spawn(move || {
                let mut number = 1_u64;
                while !are_over.load(Ordering::Relaxed) {
                    for _ in 0..100_000 {
                        number = black_box(number.wrapping_mul(6_364_136_223_846_793_005) + 1);
                    }
                }
            })
        };
        let threads = (0..count).map(|_| burn()).collect();
        Burners { are_over, threads }
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.are_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A burner has nothing in it that could panic.
            let _ = thread.join();
        }
    }
}
