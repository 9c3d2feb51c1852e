//! How many threads a process has, and the moment it ends.
//!
//! A process ends when its last thread exits, with that thread's code, or when someone closes
//! it (any thread's `exit`, a fault, a kill), with the code given then. Closing admits no new
//! thread and is decided once; the process is gone when the last thread has left.
//!
//! Called under the lock of the process's thread table.

/// The live threads of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    live: u32,
    ended_with: Option<i64>,
}

/// What follows from closing a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CloseVerdict {
    /// It was open: kill every thread.
    KillAll,
    /// It was closed before, and the earlier code stands; nothing to do.
    Already,
}

/// What follows from a thread's leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LeaveVerdict {
    /// Others are left.
    Continue,
    /// It was the last: tear the process down; its exit code is this.
    ProcessEnds {
        /// The process's exit code.
        code: i64,
    },
}

/// Why a roster refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RosterError {
    /// The process is closed: no thread may be added.
    Closed,
    /// No thread is left that could leave: a defect of the kernel.
    Empty,
    /// More threads than can be counted.
    TooMany,
}

impl Roster {
    /// The roster of a process whose first thread has not been admitted.
    pub const fn new() -> Self {
        Self { live: 0, ended_with: None }
    }

    /// Threads that have not left.
    pub const fn live(&self) -> u32 {
        self.live
    }

    /// Whether the process admits no thread any more.
    pub const fn is_closed(&self) -> bool {
        self.ended_with.is_some()
    }

    /// Counts one more thread, unless the process is ending.
    pub fn admit(&mut self) -> Result<(), RosterError> {
        if self.is_closed() {
            return Err(RosterError::Closed);
        }
        self.live = self.live.checked_add(1).ok_or(RosterError::TooMany)?;
        Ok(())
    }

    /// The process is to end with `code`.
    pub fn close(&mut self, code: i64) -> CloseVerdict {
        if self.is_closed() {
            return CloseVerdict::Already;
        }
        self.ended_with = Some(code);
        CloseVerdict::KillAll
    }

    /// A thread has left, with `code`.
    pub fn leave(&mut self, code: i64) -> Result<LeaveVerdict, RosterError> {
        self.live = self.live.checked_sub(1).ok_or(RosterError::Empty)?;
        if self.live != 0 {
            return Ok(LeaveVerdict::Continue);
        }
        let code = *self.ended_with.get_or_insert(code);
        Ok(LeaveVerdict::ProcessEnds { code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thread_ends_the_process_with_its_code() {
        let mut roster = Roster::new();
        assert_eq!(roster.admit(), Ok(()));
        assert_eq!(roster.admit(), Ok(()));
        assert_eq!(roster.leave(5), Ok(LeaveVerdict::Continue));
        assert_eq!(roster.leave(6), Ok(LeaveVerdict::ProcessEnds { code: 6 }));
        assert_eq!(roster.admit(), Err(RosterError::Closed));
        assert_eq!(roster.leave(7), Err(RosterError::Empty));
    }

    #[test]
    fn the_first_close_decides_the_code_and_kills_once() {
        let mut roster = Roster::new();
        assert_eq!(roster.admit(), Ok(()));
        assert_eq!(roster.admit(), Ok(()));
        assert_eq!(roster.close(-1), CloseVerdict::KillAll);
        assert_eq!(roster.close(-2), CloseVerdict::Already);
        assert_eq!(roster.admit(), Err(RosterError::Closed));
        assert_eq!(roster.live(), 2);
        assert_eq!(roster.leave(5), Ok(LeaveVerdict::Continue));
        assert_eq!(roster.leave(6), Ok(LeaveVerdict::ProcessEnds { code: -1 }));
    }
}
