//! Timer: the clock, and completions at a time.

use crate::refuse;
use kernel_ops::object::{Calling, Objects, SleepQuota};
use schema::timer::{NowResults, Server, SleepParams, SleepUntilParams, WallClockResults};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What a timer needs of the kernel.
pub trait Host {
    /// The monotonic clock.
    fn now_ns(&self) -> u64;
    /// What a clock chip showed once, in seconds since 1970, and what the clock then read; `None` without a date.
    fn wall_clock(&self) -> Option<(u64, u64)>;
    /// Completes the call once the clock reads `deadline_ns`.
    fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota>;
}

impl<M: Objects> Host for Calling<'_, M> {
    fn now_ns(&self) -> u64 {
        self.caller.m.clock()
    }

    fn wall_clock(&self) -> Option<(u64, u64)> {
        self.caller.m.wall_clock()
    }

    fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota> {
        Calling::complete_at(self, deadline_ns)
    }
}

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The server.
#[derive(Debug)]
pub struct Timer<'h, H>(pub &'h mut H);

impl<H: Host> Timer<'_, H> {
    fn until(&mut self, deadline_ns: u64) -> Answer<()> {
        if deadline_ns <= self.0.now_ns() {
            return Ok(());
        }
        match self.0.complete_at(deadline_ns) {
            Ok(()) => Err(NoResult::Later),
            Err(SleepQuota) => Err(refuse(
                ExceptionKind::Overloaded,
                "the process has as many pending sleeps as its profile allows; cancel one, or ask for a larger \
                 sleepWaiters",
            )),
        }
    }
}

impl<H: Host> Server for Timer<'_, H> {
    fn now(&mut self) -> Answer<NowResults> {
        Ok(NowResults { ns: self.0.now_ns() })
    }

    fn sleep(&mut self, params: SleepParams) -> Answer<()> {
        if params.ns == 0 {
            return Ok(());
        }
        let deadline_ns = self.0.now_ns().saturating_add(params.ns);
        self.until(deadline_ns)
    }

    fn sleep_until(&mut self, params: SleepUntilParams) -> Answer<()> {
        self.until(params.deadline_ns)
    }

    fn wall_clock(&mut self) -> Answer<WallClockResults> {
        let Some((unix_s, read_ns)) = self.0.wall_clock() else {
            return Err(refuse(
                ExceptionKind::Failed,
                "the machine's clock chip showed no date at boot; set it in the firmware",
            ));
        };
        let since_ns = self.0.now_ns().saturating_sub(read_ns);
        Ok(WallClockResults {
            unix_seconds: unix_s.saturating_add(since_ns / NS_PER_SECOND),
            nanoseconds: (since_ns % NS_PER_SECOND) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema_wire::NoResult::Exception;

    struct Clock {
        now: u64,
        armed: Option<u64>,
        refuse: bool,
        date: Option<(u64, u64)>,
    }

    impl Host for Clock {
        fn now_ns(&self) -> u64 {
            self.now
        }
        fn wall_clock(&self) -> Option<(u64, u64)> {
            self.date
        }
        fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota> {
            if self.refuse {
                return Err(SleepQuota);
            }
            self.armed = Some(deadline_ns);
            Ok(())
        }
    }

    #[test]
    fn what_has_passed_completes_at_once_and_the_rest_later() {
        let mut clock = Clock { now: 100, armed: None, refuse: false, date: None };
        assert_eq!(Timer(&mut clock).now(), Ok(NowResults { ns: 100 }));
        assert_eq!(Timer(&mut clock).sleep(SleepParams { ns: 0 }), Ok(()));
        for deadline_ns in [0, 99, 100] {
            assert_eq!(Timer(&mut clock).sleep_until(SleepUntilParams { deadline_ns }), Ok(()));
        }
        assert_eq!(clock.armed, None);
        assert_eq!(Timer(&mut clock).sleep(SleepParams { ns: 1 }), Err(NoResult::Later));
        assert_eq!(clock.armed, Some(101));
        assert_eq!(Timer(&mut clock).sleep(SleepParams { ns: u64::MAX }), Err(NoResult::Later));
        assert_eq!(clock.armed, Some(u64::MAX));
    }

    #[test]
    fn the_date_goes_on_with_the_clock_or_is_not_known() {
        let date = |now, date| {
            let mut clock = Clock { now, armed: None, refuse: false, date };
            Timer(&mut clock).wall_clock().map(|at| (at.unix_seconds, at.nanoseconds))
        };
        assert_eq!(date(700, Some((1_700_000_000, 700))), Ok((1_700_000_000, 0)));
        assert_eq!(
            date(3_000_000_699, Some((1_700_000_000, 700))),
            Ok((1_700_000_002, 999_999_999))
        );
        assert_eq!(date(3_000_000_700, Some((1_700_000_000, 700))), Ok((1_700_000_003, 0)));
        assert_eq!(date(0, Some((7, 700))), Ok((7, 0)));
        assert_eq!(date(u64::MAX, Some((u64::MAX, 0))).map(|(seconds, _)| seconds), Ok(u64::MAX));
        let Err(Exception(said)) = date(5, None) else { panic!("a date out of nothing") };
        assert_eq!(said.kind(), ExceptionKind::Failed);
    }

    #[test]
    fn a_full_table_is_overloaded() {
        let mut clock = Clock { now: 0, armed: None, refuse: true, date: None };
        let Err(Exception(said)) = Timer(&mut clock).sleep(SleepParams { ns: 5 }) else {
            panic!("accepted");
        };
        assert_eq!(said.kind(), ExceptionKind::Overloaded);
    }
}
