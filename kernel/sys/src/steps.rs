//! How long each step of the boot took.

use kernel_arch::time;

/// The most steps that are kept.
const MAX_STEPS: usize = 24;

/// A step and when it was done.
#[derive(Clone, Copy, Debug)]
struct Step {
    name: &'static str,
    done_at: u64,
}

/// The steps so far, by counter value: the clock's rate is known only later.
#[derive(Clone, Copy, Debug)]
pub struct Steps {
    steps: [Step; MAX_STEPS],
    count: usize,
}

/// A step with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed {
    /// What was done.
    pub name: &'static str,
    /// When it was done, since the kernel was entered.
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
}

impl Steps {
    /// None yet.
    pub const fn new() -> Self {
        Self { steps: [Step { name: "", done_at: 0 }; MAX_STEPS], count: 0 }
    }

    /// Says that a step is done.
    pub fn done(&mut self, name: &'static str) {
        if let Some(step) = self.steps.get_mut(self.count) {
            *step = Step { name, done_at: time::ticks() };
            self.count += 1;
        }
    }

    /// The steps with their times; nothing before the clock is known.
    pub fn timed(&self) -> impl Iterator<Item = Timed> {
        let mut before_ns = 0;
        self.steps.iter().take(self.count).filter_map(move |step| {
            let at_ns = time::ticks_to_ns(step.done_at)?;
            let took_ns = at_ns.saturating_sub(before_ns);
            before_ns = at_ns;
            Some(Timed { name: step.name, at_ns, took_ns })
        })
    }
}

impl Default for Steps {
    fn default() -> Self {
        Self::new()
    }
}
