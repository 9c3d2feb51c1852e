//! Which CPUs have announced that they are idle.

use abi_sync::atomic::{AtomicU64, Ordering, fence};

/// CPUs in one word.
const WORD: usize = 64;

/// The idle CPUs of a machine of at most 128.
#[derive(Debug, Default)]
pub struct IdleSet([AtomicU64; 2]);

impl IdleSet {
    /// Nobody is idle.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    /// Nobody is idle.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self([AtomicU64::new(0), AtomicU64::new(0)])
    }

    /// Says that CPU `cpu` is idle. The caller then looks for work once more before it halts.
    #[inline]
    pub fn announce(&self, cpu: usize) {
        if let Some(word) = self.0.get(cpu / WORD) {
            word.fetch_or(1 << (cpu % WORD), Ordering::Relaxed);
        }
        // The idle CPU's half of the pair with the fence in `seek`: announce, fence, look.
        fence(Ordering::SeqCst);
    }

    /// Takes it back: CPU `cpu` runs something.
    #[inline]
    pub fn retract(&self, cpu: usize) {
        if let Some(word) = self.0.get(cpu / WORD) {
            word.fetch_and(!(1 << (cpu % WORD)), Ordering::Relaxed);
        }
    }

    /// The idle CPUs (bit `n` is CPU `n`), asked after work was made visible.
    #[inline]
    pub fn seek(&self) -> u128 {
        // The sender's half of the pair with the fence in `announce`: work, fence, seek.
        fence(Ordering::SeqCst);
        self.glance()
    }

    /// The idle CPUs, as a guess.
    #[inline]
    pub fn glance(&self) -> u128 {
        let [low, high] = &self.0;
        u128::from(low.load(Ordering::Relaxed)) | u128::from(high.load(Ordering::Relaxed)) << WORD
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_its_bit() {
        let idle = IdleSet::new();
        for cpu in 0..128 {
            idle.announce(cpu);
            assert_eq!(idle.seek(), 1 << cpu);
            idle.retract(cpu);
            assert_eq!(idle.glance(), 0);
        }
        idle.announce(128);
        assert_eq!(idle.glance(), 0, "there is no such CPU");
    }
}
