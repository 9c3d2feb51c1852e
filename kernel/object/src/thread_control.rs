//! ThreadControl: what a thread does to itself.

use crate::refuse;
use schema::thread_control::{ExitThreadParams, GetFsBaseResults, Server, SetFsBaseParams};
use schema_wire::{Answer, ExceptionKind, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// The caller's FS base.
    fn fs_base(&self) -> u64;
    /// Sets it at once; `false` if it is no user address.
    fn set_fs_base(&mut self, fs_base: u64) -> bool;
    /// Ends the caller when it leaves the kernel; there is no completion.
    fn exit_thread(&mut self, code: i64);
}

/// The server.
#[derive(Debug)]
pub struct ThreadControl<'h, H>(pub &'h mut H);

impl<H: Host> Server for ThreadControl<'_, H> {
    fn get_fs_base(&mut self) -> Answer<GetFsBaseResults> {
        Ok(GetFsBaseResults { fs_base: self.0.fs_base() })
    }

    fn set_fs_base(&mut self, params: SetFsBaseParams) -> Answer<()> {
        if self.0.set_fs_base(params.fs_base) {
            Ok(())
        } else {
            Err(refuse(ExceptionKind::InvalidArgument, "fsBase is not a user address"))
        }
    }

    fn exit_thread(&mut self, params: ExitThreadParams) -> Answer<()> {
        self.0.exit_thread(params.code);
        Err(NoResult::Later)
    }
}
