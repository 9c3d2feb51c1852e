//! ProcessHandle: waiting for one process, looking at it, or ending it.

use crate::refuse;
use core_ledger::{Line, Reading};
use kernel_ops::capability::ProcessKey;
use kernel_ops::object::Calling;
use kernel_process::Machine;
use kernel_process::handle::{Held, WaitVerdict, exit_reason};
use kernel_process::process::Ended;
use schema::process_handle::{
    ExitCodeResults, InfoResults, KillParams, LineUsage, ProcessUsage, Server, UsageResults,
    WaitResults,
};
use schema::process_handle_capnp::ExitReason;
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Waits for the end of the process; a pending wait completes the call then.
    fn wait(&mut self) -> WaitVerdict;
    /// How it ended, if it is gone.
    fn ended(&self) -> Option<Ended>;
    /// Ends it with a code; nothing changes if it is ending.
    fn kill(&mut self, code: i64);
    /// Its number and generation.
    fn key(&self) -> ProcessKey;
    /// Threads that live.
    fn live_threads(&self) -> u32;
    /// When it began.
    fn began_ns(&self) -> u64;
    /// A line of its account.
    fn line(&self, line: Line) -> Reading;
    /// Limits that are not counted: ring entries, scratch bytes, calls in flight, calls queued.
    fn limits(&self) -> [u32; 4];
}

/// A handle of the caller's, and the process it names.
pub struct Handle<'c, 'r, M: Machine> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// The process, which is not another's as long as this is held.
    pub held: Held<M>,
}

impl<M: Machine> Host for Handle<'_, '_, M> {
    fn wait(&mut self) -> WaitVerdict {
        self.held.wait(self.calling)
    }

    fn ended(&self) -> Option<Ended> {
        self.held.ended()
    }

    fn kill(&mut self, code: i64) {
        self.held.kill(code);
    }

    fn key(&self) -> ProcessKey {
        self.held.key()
    }

    fn live_threads(&self) -> u32 {
        self.held.process().members.lock().roster.live()
    }

    fn began_ns(&self) -> u64 {
        self.held.began_ns()
    }

    fn line(&self, line: Line) -> Reading {
        self.held.process().ops.ledger.reading(line)
    }

    fn limits(&self) -> [u32; 4] {
        self.held.process().members.lock().uncounted_limits()
    }
}

/// The server.
#[derive(Debug)]
pub struct ProcessHandle<'h, H>(pub &'h mut H);

impl<H: Host> Server for ProcessHandle<'_, H> {
    fn wait(&mut self) -> Answer<WaitResults> {
        match self.0.wait() {
            WaitVerdict::Ended(ended) => {
                Ok(WaitResults { exit_code: ended.code, reason: exit_reason(ended.reason) })
            }
            WaitVerdict::Pending => Err(NoResult::Later),
            WaitVerdict::SecondWaiter => Err(refuse(
                ExceptionKind::Overloaded,
                "another call waits for this process: cancel it, or wait for its answer",
            )),
        }
    }

    fn exit_code(&mut self) -> Answer<ExitCodeResults> {
        Ok(match self.0.ended() {
            Some(ended) => ExitCodeResults {
                exited: true,
                exit_code: ended.code,
                reason: exit_reason(ended.reason),
            },
            None => ExitCodeResults { exited: false, exit_code: 0, reason: ExitReason::Exited },
        })
    }

    fn kill(&mut self, params: KillParams) -> Answer<()> {
        self.0.kill(params.exit_code);
        Ok(())
    }

    fn info(&mut self) -> Answer<InfoResults> {
        let key = self.0.key();
        Ok(InfoResults {
            pid: key.slot,
            generation: key.generation,
            live_threads: self.0.live_threads(),
            started_ns: self.0.began_ns(),
        })
    }

    fn usage(&mut self) -> Answer<UsageResults> {
        Ok(UsageResults { usage: usage_of(|line| self.0.line(line), self.0.limits()) })
    }
}

/// An account as the interface tells it.
pub(crate) fn usage_of(line: impl Fn(Line) -> Reading, limits: [u32; 4]) -> ProcessUsage {
    let line = |of| {
        let Reading { used, lent, limit } = line(of);
        LineUsage { used, lent, limit }
    };
    let [entries, scratch, in_flight, queued] = limits;
    ProcessUsage {
        cap_slots: line(Line::CapSlots),
        threads: line(Line::Threads),
        kernel_stack_pages: line(Line::KernelStackPages),
        frames: line(Line::Frames),
        sleep_waiters: line(Line::SleepWaiters),
        ring_entries: entries,
        ring_scratch_limit_bytes: scratch,
        in_flight_call_limit: in_flight,
        endpoint_queue_limit: queued,
        kernel_bytes: line(Line::KernelBytes),
        registered_buffers: line(Line::RegisteredBuffers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_process::process::Reason;

    struct One {
        ended: Option<Ended>,
        is_waited_for: bool,
        killed: Option<i64>,
    }

    impl Host for One {
        fn wait(&mut self) -> WaitVerdict {
            match self.ended {
                Some(ended) => WaitVerdict::Ended(ended),
                None if self.is_waited_for => WaitVerdict::SecondWaiter,
                None => WaitVerdict::Pending,
            }
        }
        fn ended(&self) -> Option<Ended> {
            self.ended
        }
        fn kill(&mut self, code: i64) {
            self.killed = Some(code);
        }
        fn key(&self) -> ProcessKey {
            ProcessKey { slot: 7, generation: 9 }
        }
        fn live_threads(&self) -> u32 {
            3
        }
        fn began_ns(&self) -> u64 {
            77
        }
        fn line(&self, line: Line) -> Reading {
            let n = line.index() as u32;
            Reading { used: n, lent: 10 + n, limit: 100 + n }
        }
        fn limits(&self) -> [u32; 4] {
            [64, 4096, 8, 16]
        }
    }

    const LIVE: One = One { ended: None, is_waited_for: false, killed: None };

    #[test]
    fn a_live_process_is_waited_for_once_and_looked_at_without_waiting() {
        let mut one = LIVE;
        assert_eq!(ProcessHandle(&mut one).wait(), Err(NoResult::Later));
        let seen = ProcessHandle(&mut one).exit_code().unwrap();
        assert_eq!((seen.exited, seen.exit_code), (false, 0));
        one.is_waited_for = true;
        let Err(NoResult::Exception(exception)) = ProcessHandle(&mut one).wait() else {
            panic!("two calls wait");
        };
        assert_eq!(exception.kind(), ExceptionKind::Overloaded);
    }

    #[test]
    fn a_status_is_told_again_and_again_with_its_reason() {
        for (reason, expected) in [
            (Reason::Exited, ExitReason::Exited),
            (Reason::Faulted, ExitReason::Faulted),
            (Reason::Killed, ExitReason::Killed),
        ] {
            let mut one = One { ended: Some(Ended { code: -7, reason }), ..LIVE };
            for _ in 0..2 {
                let waited = ProcessHandle(&mut one).wait().unwrap();
                assert_eq!((waited.exit_code, waited.reason), (-7, expected));
                let seen = ProcessHandle(&mut one).exit_code().unwrap();
                assert_eq!((seen.exited, seen.exit_code, seen.reason), (true, -7, expected));
            }
        }
    }

    #[test]
    fn kill_info_and_usage_are_the_hosts() {
        let mut one = LIVE;
        assert_eq!(ProcessHandle(&mut one).kill(KillParams { exit_code: 5 }), Ok(()));
        assert_eq!(one.killed, Some(5));
        let info = ProcessHandle(&mut one).info().unwrap();
        assert_eq!((info.pid, info.generation, info.live_threads, info.started_ns), (7, 9, 3, 77));
        let usage = ProcessHandle(&mut one).usage().unwrap().usage;
        let line = |line: LineUsage| (line.used, line.lent, line.limit);
        assert_eq!(line(usage.cap_slots), (0, 10, 100));
        assert_eq!(line(usage.kernel_bytes), (5, 15, 105));
        assert_eq!((usage.ring_entries, usage.endpoint_queue_limit), (64, 16));
    }
}
