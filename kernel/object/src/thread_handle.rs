//! ThreadHandle: waiting for one thread, or looking at it.

use crate::refuse;
use core_thread::{JoinError, JoinVerdict, ThreadKey};
use kernel_ops::object::Calling;
use kernel_process::{Machine, join};
use schema::thread_handle::{ExitCodeResults, JoinResults, Server};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Joins the thread; a pending join completes the call when the thread exits.
    fn join(&mut self) -> Result<JoinVerdict, JoinError>;
    /// Its exit code, `None` while it lives.
    fn exit_code(&self) -> Result<Option<i64>, JoinError>;
}

/// A handle of the caller's.
pub struct Handle<'c, 'r, M: Machine> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// Whose handle it is.
    pub thread: ThreadKey,
}

impl<M: Machine> Host for Handle<'_, '_, M> {
    fn join(&mut self) -> Result<JoinVerdict, JoinError> {
        join::join(self.calling, self.thread)
    }

    fn exit_code(&self) -> Result<Option<i64>, JoinError> {
        join::exit_code(self.calling.caller.m, self.thread)
    }
}

/// The server.
#[derive(Debug)]
pub struct ThreadHandle<'h, H>(pub &'h mut H);

impl<H: Host> Server for ThreadHandle<'_, H> {
    fn join(&mut self) -> Answer<JoinResults> {
        match self.0.join() {
            Ok(JoinVerdict::Done { code }) => Ok(JoinResults { exit_code: code }),
            Ok(JoinVerdict::Pending) => Err(NoResult::Later),
            Err(error) => Err(refuse(ExceptionKind::Failed, error.message())),
        }
    }

    fn exit_code(&mut self) -> Answer<ExitCodeResults> {
        match self.0.exit_code() {
            Ok(code) => {
                Ok(ExitCodeResults { exited: code.is_some(), exit_code: code.unwrap_or(0) })
            }
            Err(error) => Err(refuse(ExceptionKind::Failed, error.message())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thread(Result<JoinVerdict, JoinError>, Result<Option<i64>, JoinError>);

    impl Host for Thread {
        fn join(&mut self) -> Result<JoinVerdict, JoinError> {
            self.0
        }
        fn exit_code(&self) -> Result<Option<i64>, JoinError> {
            self.1
        }
    }

    #[test]
    fn a_live_thread_is_waited_for_and_looked_at_without_waiting() {
        let mut live = Thread(Ok(JoinVerdict::Pending), Ok(None));
        assert_eq!(ThreadHandle(&mut live).join(), Err(NoResult::Later));
        let seen = ThreadHandle(&mut live).exit_code();
        assert_eq!(seen, Ok(ExitCodeResults { exited: false, exit_code: 0 }));
    }

    #[test]
    fn a_retained_status_is_told_at_once() {
        let mut over = Thread(Ok(JoinVerdict::Done { code: -3 }), Ok(Some(-3)));
        assert_eq!(ThreadHandle(&mut over).join(), Ok(JoinResults { exit_code: -3 }));
        let seen = ThreadHandle(&mut over).exit_code();
        assert_eq!(seen, Ok(ExitCodeResults { exited: true, exit_code: -3 }));
    }

    #[test]
    fn every_refusal_is_failed_with_a_sentence_of_its_own() {
        use JoinError::{AlreadyJoined, Detached, SecondWaiter, SelfJoin};
        let all = [SelfJoin, SecondWaiter, AlreadyJoined, Detached];
        for (n, error) in all.iter().enumerate() {
            let mut thread = Thread(Err(*error), Err(*error));
            let joined = ThreadHandle(&mut thread).join().map(|_| ());
            let seen = ThreadHandle(&mut thread).exit_code().map(|_| ());
            for answer in [joined, seen] {
                let Err(NoResult::Exception(exception)) = answer else { panic!("accepted") };
                assert_eq!(exception.kind(), ExceptionKind::Failed);
                assert_eq!(exception.message(), error.message());
            }
            assert!(all[..n].iter().all(|other| other.message() != error.message()));
        }
    }
}
