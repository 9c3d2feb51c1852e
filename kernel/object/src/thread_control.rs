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

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that may have any FS base below 1000.
    #[derive(Default)]
    struct Own {
        fs_base: u64,
        code: Option<i64>,
    }

    impl Host for Own {
        fn fs_base(&self) -> u64 {
            self.fs_base
        }
        fn set_fs_base(&mut self, fs_base: u64) -> bool {
            if fs_base < 1000 {
                self.fs_base = fs_base;
            }
            fs_base < 1000
        }
        fn exit_thread(&mut self, code: i64) {
            self.code = Some(code);
        }
    }

    #[test]
    fn what_is_set_is_got_and_what_is_refused_changes_nothing() {
        let mut own = Own::default();
        assert_eq!(ThreadControl(&mut own).set_fs_base(SetFsBaseParams { fs_base: 16 }), Ok(()));
        let refused = ThreadControl(&mut own).set_fs_base(SetFsBaseParams { fs_base: 1 << 47 });
        let Err(NoResult::Exception(exception)) = refused else { panic!("accepted") };
        assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
        assert_eq!(ThreadControl(&mut own).get_fs_base(), Ok(GetFsBaseResults { fs_base: 16 }));
    }

    #[test]
    fn a_thread_that_exits_hears_no_answer() {
        let mut own = Own::default();
        let answer = ThreadControl(&mut own).exit_thread(ExitThreadParams { code: -7 });
        assert_eq!(answer, Err(NoResult::Later));
        assert_eq!(own.code, Some(-7));
    }
}
