//! ThreadControl: the registers of the thread that asks.

use crate::kernel::Calling;
use kernel_arch::context::Context;

/// The calling thread.
pub struct Registers<'c, 'r>(pub &'c mut Calling<'r>);

impl kernel_object::thread_control::Host for Registers<'_, '_> {
    fn fs_base(&self) -> u64 {
        self.0.caller.thread.ops.home.context().context().fs_base()
    }

    fn set_fs_base(&mut self, fs_base: u64) -> bool {
        Context::set_own_fs_base(fs_base).is_ok()
    }

    fn exit_thread(&mut self, code: i64) {
        self.0.ends_with = Some(code);
    }
}
