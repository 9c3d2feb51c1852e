//! A thread or a process is told to end.

use crate::machine::{Machine, process_of};
use crate::process::Process;
use crate::thread::Thread;
use kernel_dispatch::{self as dispatch, Here, preemption_point};

/// Thread records looked at between two preemption points: as many as fit a section of kernel code
/// (`section`) if all of them are the process's and most of those only have to be marked.
const RECORDS_PER_PREEMPTION_POINT: usize = 256;

/// Ends a process with `code`: every thread but the caller is killed. Whoever closes it first decides the
/// code.
pub fn close<M: Machine>(m: M, process: &'static Process<M>, code: i64) {
    if !process.close(code) {
        return;
    }
    let me = Here::now(m).current().map(Thread::slot);
    for (n, thread) in m.records().threads().iter().enumerate() {
        if n.is_multiple_of(RECORDS_PER_PREEMPTION_POINT) {
            preemption_point(m);
        }
        // Its name before whose it is: a record that is another process's by the time it is asked
        // has another name by then, and the kill of this one finds nobody.
        let key = thread.key();
        // A thread that closes its own process ends by itself.
        if thread.ops.process_slot() == process.slot() && Some(thread.slot()) != me {
            dispatch::kill(m, thread, key.generation);
        }
    }
}

/// The running thread ends itself, with its code.
pub fn exit_thread<M: Machine>(m: M, thread: &'static Thread<M>, code: i64) -> ! {
    thread.set_exit_code(code);
    kernel_ops::machine::end(m, thread)
}

/// Closes the process of the running thread, which kills its other threads, and ends the thread.
pub fn exit_process<M: Machine>(m: M, thread: &'static Thread<M>, code: i64) -> ! {
    thread.set_exit_code(code);
    close(m, process_of(m, thread), code);
    kernel_ops::machine::end(m, thread)
}
