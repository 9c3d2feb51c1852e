//! The verdict on a service that ended.

use crate::service::Service;

/// Exit codes that a program's runtime gives and not the program: it panicked, or a thread could not go on.
const RUNTIME_CODES: core::ops::RangeInclusive<i64> = 101..=103;

/// The longest pause before a restart.
pub const MOST_PAUSE_NS: u64 = 10_000_000_000;

/// How a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this exit code.
    Exited(i64),
    /// By a fault or a kill, with this exit code.
    Broken(i64),
    /// It could not even be started.
    NotStarted,
}

impl End {
    /// Whether it is one that nobody wanted.
    pub fn is_failure(self) -> bool {
        match self {
            Self::Exited(code) => RUNTIME_CODES.contains(&code),
            Self::Broken(_) | Self::NotStarted => true,
        }
    }
}

/// What becomes of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// It is started again after a pause.
    Restart {
        /// The pause.
        pause_ns: u64,
    },
    /// It did what it was for.
    Done,
    /// It failed more often than it may.
    GivenUp,
    /// The system ends, with this exit code.
    EndSystem(i64),
}

/// The exit code of a system whose essential service was given up.
pub const GIVEN_UP: i64 = 1;

/// A service's failures, as far as they count.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supervisor {
    /// Restarts since the window began, and when that was.
    restarts: u32,
    since_ns: u64,
}

impl Supervisor {
    /// No failure yet.
    pub const fn new() -> Self {
        Self { restarts: 0, since_ns: 0 }
    }

    /// The service ended at `now_ns`.
    pub fn ended(&mut self, service: &Service<'_>, end: End, now_ns: u64) -> Verdict {
        if !end.is_failure() {
            return match end {
                End::Exited(code) if service.is_essential => Verdict::EndSystem(code),
                _ => Verdict::Done,
            };
        }
        // The window is that of the failures in a row: it begins with the first of them.
        if self.restarts == 0 || now_ns.saturating_sub(self.since_ns) > service.within_ns {
            (self.restarts, self.since_ns) = (0, now_ns);
        }
        if self.restarts >= service.restarts {
            return if service.is_essential {
                Verdict::EndSystem(GIVEN_UP)
            } else {
                Verdict::GivenUp
            };
        }
        let doubled = 1u64.checked_shl(self.restarts).unwrap_or(u64::MAX);
        self.restarts += 1;
        Verdict::Restart { pause_ns: service.pause_ns.saturating_mul(doubled).min(MOST_PAUSE_NS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use test_property::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    const BROKEN: End = End::Broken(-270);

    fn service(line: &str) -> Service<'_> {
        Service::of(line).unwrap()
    }

    #[test]
    fn a_failure_is_followed_by_a_restart_after_twice_the_pause_until_there_were_enough() {
        let service = service("a restarts=3 pause=100");
        let mut supervisor = Supervisor::new();
        let verdicts: Vec<_> = (0..5).map(|_| supervisor.ended(&service, BROKEN, 7)).collect();
        let restart = |pause_ns| Verdict::Restart { pause_ns };
        let expected = [
            restart(SECOND / 10),
            restart(SECOND / 5),
            restart(SECOND / 5 * 2),
            Verdict::GivenUp,
            Verdict::GivenUp,
        ];
        assert_eq!(verdicts, expected);
    }

    #[test]
    fn after_the_window_failures_are_counted_anew() {
        let service = service("a restarts=1 within=10");
        let mut supervisor = Supervisor::new();
        let mut at = |seconds| supervisor.ended(&service, BROKEN, seconds * SECOND);
        assert!(matches!(at(5), Verdict::Restart { .. }));
        assert!(matches!(at(16), Verdict::Restart { .. }));
        assert_eq!(at(26), Verdict::GivenUp);
        assert!(matches!(at(27), Verdict::Restart { .. }));
    }

    #[test]
    fn the_system_ends_with_an_essential_service_and_its_code() {
        let service = service("a essential restarts=1");
        let mut supervisor = Supervisor::new();
        assert_eq!(supervisor.ended(&service, End::Exited(7), 0), Verdict::EndSystem(7));
        // A panic is no end that anybody wanted.
        assert!(matches!(supervisor.ended(&service, End::Exited(101), 0), Verdict::Restart { .. }));
        assert_eq!(supervisor.ended(&service, End::NotStarted, 0), Verdict::EndSystem(GIVEN_UP));
    }

    #[test]
    fn who_ends_well_is_done() {
        let mut supervisor = Supervisor::new();
        let service = service("a restarts=9");
        for code in [0, 1, 100, 104, -1] {
            assert_eq!(supervisor.ended(&service, End::Exited(code), 0), Verdict::Done);
        }
    }

    test_property::proptest! {
        #[test]
        fn restarts_within_a_window_are_at_most_those_granted(
            restarts in 0u32..80,
            gaps in test_property::inner::collection::vec(0u64..3 * SECOND, 1..200),
        ) {
            let service = Service { restarts, within_ns: 10 * SECOND, ..service("a") };
            let (mut supervisor, mut now_ns) = (Supervisor::new(), 0);
            let mut at = Vec::new();
            for gap in gaps {
                now_ns += gap;
                match supervisor.ended(&service, BROKEN, now_ns) {
                    Verdict::Restart { pause_ns } => {
                        prop_assert!(pause_ns <= MOST_PAUSE_NS);
                        at.push(now_ns);
                    }
                    verdict => {
                        prop_assert_eq!(verdict, Verdict::GivenUp);
                        break;
                    }
                }
            }
            // In two windows at most twice as many, wherever they begin.
            for (index, from) in at.iter().enumerate() {
                let within = at[index..].iter().take_while(|at| **at - from <= service.within_ns);
                prop_assert!(within.count() <= 2 * restarts as usize);
            }
        }
    }
}
