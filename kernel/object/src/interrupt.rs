//! Interrupt: one line of the machine.

use crate::refuse;
use core_interrupt::{Info, Trigger};
use kernel_ops::interrupt::{self, NotWaiting};
use kernel_ops::object::{Calling, Objects};
use schema::interrupt::{InfoResults, Server, SetEnabledParams, WaitResults};
use schema::interrupt_capnp::TriggerMode;
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Interrupts that nobody has been told of; `None` if the call completes with the next.
    fn wait(&mut self) -> Result<Option<u64>, NotWaiting>;
    /// The device is served.
    fn acknowledge(&mut self);
    /// Masks the line, or unmasks it.
    fn set_enabled(&mut self, is_enabled: bool);
    /// Its number, and what it is; `None` if it is nobody's any more.
    fn info(&self) -> Option<(u32, Info)>;
}

/// A line, in a call.
pub struct OfLine<'c, 'r, M: Objects> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// Its place.
    pub place: u32,
}

impl<M: Objects> Host for OfLine<'_, '_, M> {
    fn wait(&mut self) -> Result<Option<u64>, NotWaiting> {
        interrupt::wait(self.calling, self.place)
    }

    fn acknowledge(&mut self) {
        interrupt::acknowledge(self.calling.caller.m, self.place);
    }

    fn set_enabled(&mut self, is_enabled: bool) {
        interrupt::set_enabled(self.calling.caller.m, self.place, is_enabled);
    }

    fn info(&self) -> Option<(u32, Info)> {
        interrupt::info(self.calling.caller.m, self.place)
    }
}

/// The server.
#[derive(Debug)]
pub struct Interrupt<'h, H>(pub &'h mut H);

fn gone() -> NoResult {
    refuse(ExceptionKind::Disconnected, "the line is nobody's any more")
}

impl<H: Host> Server for Interrupt<'_, H> {
    fn wait(&mut self) -> Answer<WaitResults> {
        match self.0.wait() {
            Ok(Some(count)) => Ok(WaitResults { count }),
            Ok(None) => Err(NoResult::Later),
            Err(NotWaiting::Occupied) => Err(refuse(
                ExceptionKind::Overloaded,
                "another call waits for this line: let it complete, or cancel it",
            )),
            Err(NotWaiting::Room) => Err(refuse(
                ExceptionKind::InvalidArgument,
                "the count goes into the inline slot: wait without an address for results",
            )),
            Err(NotWaiting::Gone) => Err(gone()),
        }
    }

    fn acknowledge(&mut self) -> Answer<()> {
        self.0.acknowledge();
        Ok(())
    }

    fn set_enabled(&mut self, params: SetEnabledParams) -> Answer<()> {
        self.0.set_enabled(params.enabled);
        Ok(())
    }

    fn info(&mut self) -> Answer<InfoResults> {
        let (line, Info { trigger, is_enabled, total }) = self.0.info().ok_or_else(gone)?;
        let trigger = match trigger {
            Trigger::Edge => TriggerMode::Edge,
            Trigger::Level => TriggerMode::Level,
        };
        Ok(InfoResults { line, trigger, enabled: is_enabled, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Twenty {
        waits: Result<Option<u64>, NotWaiting>,
        is_enabled: bool,
        answers: u32,
        is_there: bool,
    }

    const TWENTY: Twenty =
        Twenty { waits: Ok(None), is_enabled: false, answers: 0, is_there: true };

    impl Host for Twenty {
        fn wait(&mut self) -> Result<Option<u64>, NotWaiting> {
            self.waits
        }
        fn acknowledge(&mut self) {
            self.answers += 1;
        }
        fn set_enabled(&mut self, is_enabled: bool) {
            self.is_enabled = is_enabled;
        }
        fn info(&self) -> Option<(u32, Info)> {
            let Self { is_enabled, .. } = *self;
            self.is_there.then_some((20, Info { trigger: Trigger::Level, is_enabled, total: 9 }))
        }
    }

    #[test]
    fn a_wait_is_told_the_count_now_or_later() {
        let wait = |waits| Interrupt(&mut Twenty { waits, ..TWENTY }).wait();
        assert_eq!(wait(Ok(Some(7))), Ok(WaitResults { count: 7 }));
        assert_eq!(wait(Ok(None)), Err(NoResult::Later));
        for (why, kind) in [
            (NotWaiting::Occupied, ExceptionKind::Overloaded),
            (NotWaiting::Room, ExceptionKind::InvalidArgument),
            (NotWaiting::Gone, ExceptionKind::Disconnected),
        ] {
            let Err(NoResult::Exception(exception)) = wait(Err(why)) else { panic!("{why:?}") };
            assert_eq!(exception.kind(), kind);
        }
    }

    #[test]
    fn the_rest_is_the_lines() {
        let mut line = TWENTY;
        assert_eq!(Interrupt(&mut line).set_enabled(SetEnabledParams { enabled: true }), Ok(()));
        assert_eq!(Interrupt(&mut line).acknowledge(), Ok(()));
        assert_eq!(line.answers, 1);
        let info = InfoResults { line: 20, trigger: TriggerMode::Level, enabled: true, total: 9 };
        assert_eq!(Interrupt(&mut line).info(), Ok(info));
        let gone = Interrupt(&mut Twenty { is_there: false, ..TWENTY }).info();
        let Err(NoResult::Exception(exception)) = gone else { panic!("told") };
        assert_eq!(exception.kind(), ExceptionKind::Disconnected);
    }
}
