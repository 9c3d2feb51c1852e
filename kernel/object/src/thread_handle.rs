//! ThreadHandle: waiting for one thread, or looking at it.

use crate::refuse;
use core_thread::{JoinError, JoinVerdict};
use schema::thread_handle::{ExitCodeResults, JoinResults, Server};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// Joins the thread; a pending join completes the call when the thread exits.
    fn join(&mut self) -> Result<JoinVerdict, JoinError>;
    /// Its exit code, `None` while it lives.
    fn exit_code(&self) -> Result<Option<i64>, JoinError>;
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
