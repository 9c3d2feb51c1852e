//! Timer: the clock, and completions at a time.

use crate::refuse;
use kernel_ops::object::{Calling, Objects, SleepQuota};
use schema::timer::{NowResults, Server, SleepParams, SleepUntilParams};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What a timer needs of the kernel.
pub trait Host {
    /// The monotonic clock.
    fn now_ns(&self) -> u64;
    /// Completes the call once the clock reads `deadline_ns`.
    fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota>;
}

impl<M: Objects> Host for Calling<'_, M> {
    fn now_ns(&self) -> u64 {
        self.caller.m.clock()
    }

    fn complete_at(&mut self, deadline_ns: u64) -> Result<(), SleepQuota> {
        Calling::complete_at(self, deadline_ns)
    }
}

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema_wire::NoResult::Exception;

    struct Clock {
        now: u64,
        armed: Option<u64>,
        refuse: bool,
    }

    impl Host for Clock {
        fn now_ns(&self) -> u64 {
            self.now
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
        let mut clock = Clock { now: 100, armed: None, refuse: false };
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
    fn a_full_table_is_overloaded() {
        let mut clock = Clock { now: 0, armed: None, refuse: true };
        let Err(Exception(said)) = Timer(&mut clock).sleep(SleepParams { ns: 5 }) else {
            panic!("accepted");
        };
        assert_eq!(said.kind(), ExceptionKind::Overloaded);
    }
}
