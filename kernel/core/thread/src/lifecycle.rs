//! Join, detach and exit of one thread, and when its record's charge ends.
//!
//! A record is charged when its thread is created. The charge ends, exactly once, when the
//! thread has exited, nobody can ask for its status any more (the last handle is gone, it was
//! detached, or the status was joined), and no join is pending. Each verdict says whether this
//! was the moment; the ledger line named there is the one of the process that owns the thread.
//!
//! | | live | live, join pending | exited, status kept | ended |
//! |---|---|---|---|---|
//! | exit | status kept, or ended if unheld | joiner completes, ended | defect | defect |
//! | join | pends | second waiter | completes, ended | already joined, or gone |
//! | detach | unheld | unheld | status dropped, ended | refused |
//! | last handle released | unheld | unheld | status dropped, ended | nothing |
//! | cancel the join | not found | live | not found | not found |
//! | exit code | not exited | not exited | the code | gone |
//!
//! "Unheld" is a live thread whose status nobody will fetch; a join that was pending when the
//! thread became so still completes: it pins the record.
//!
//! Called under the lock of the process's thread table.

use crate::ThreadKey;

/// The joiner of a thread, and the mark its completion carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joiner {
    /// The waiting thread.
    pub thread: ThreadKey,
    /// Copied into its completion.
    pub user_data: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Live,
    LiveJoined(Joiner),
    Exited(i64),
    Ended { joined: bool },
}

/// One thread's end, from creation to the end of its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    own: ThreadKey,
    handles: u32,
    detached: bool,
    stage: Stage,
}

/// What follows from a thread's exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ExitVerdict {
    /// Completes with the exit code.
    pub complete: Option<Joiner>,
    /// The record's charge ends now.
    pub ends_charge: bool,
}

/// What follows from a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum JoinVerdict {
    /// The status was there: the join completes with it, and the record's charge ends now.
    Done {
        /// The exit code.
        code: i64,
    },
    /// The join is pending; the thread's exit completes it.
    Pending,
}

/// What follows from giving a handle back, or from a detach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct ReleaseVerdict {
    /// The record's charge ends now.
    pub ends_charge: bool,
}

/// Why a join, a detach or a look at the exit code is refused. The service answers `failed`
/// with the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// A thread cannot wait for its own end.
    SelfJoin,
    /// One thread waits already.
    SecondWaiter,
    /// The status was given to an earlier join.
    AlreadyJoined,
    /// The thread is detached: nobody may wait for it.
    Detached,
}

impl JoinError {
    /// What the caller is told.
    pub const fn message(self) -> &'static str {
        match self {
            Self::SelfJoin => "a thread cannot join itself; another thread has to",
            Self::SecondWaiter => "another thread waits for this one already; one join is allowed",
            Self::AlreadyJoined => "the status was taken by an earlier join; it is given once",
            Self::Detached => "the thread is detached; join before the detach",
        }
    }
}

/// An event that cannot happen to a record in this stage: a defect of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleError {
    /// The thread exited before.
    ExitedTwice,
    /// There is no handle that could be copied or given back.
    NoHandle,
    /// More handles than can be counted.
    TooManyHandles,
    /// No such join is pending.
    NotFound,
}

impl Lifecycle {
    /// Whether it is that thread's.
    #[inline]
    pub fn is(&self, thread: ThreadKey) -> bool {
        self.own == thread
    }

    /// A new thread with one handle, charged.
    pub const fn new(own: ThreadKey) -> Self {
        Self { own, handles: 1, detached: false, stage: Stage::Live }
    }

    /// A new thread nobody holds a handle to, charged: a process's initial thread.
    pub const fn new_unheld(own: ThreadKey) -> Self {
        Self { own, handles: 0, detached: false, stage: Stage::Live }
    }

    /// Whether the charge still stands.
    pub const fn is_charged(&self) -> bool {
        !matches!(self.stage, Stage::Ended { .. })
    }

    /// Whether the record is referred to by no handle and holds no charge, so that it can be
    /// recycled.
    pub const fn is_over(&self) -> bool {
        self.handles == 0 && !self.is_charged()
    }

    const fn is_held(&self) -> bool {
        self.handles != 0 && !self.detached
    }

    /// The thread exits with `code`.
    pub fn exit(&mut self, code: i64) -> Result<ExitVerdict, LifecycleError> {
        let (stage, complete) = match self.stage {
            Stage::Live if self.is_held() => (Stage::Exited(code), None),
            Stage::Live => (Stage::Ended { joined: false }, None),
            Stage::LiveJoined(joiner) => (Stage::Ended { joined: true }, Some(joiner)),
            Stage::Exited(_) | Stage::Ended { .. } => return Err(LifecycleError::ExitedTwice),
        };
        self.stage = stage;
        Ok(ExitVerdict { complete, ends_charge: !self.is_charged() })
    }

    /// `joiner` wants to wait for the exit.
    pub fn join(&mut self, joiner: Joiner) -> Result<JoinVerdict, JoinError> {
        if let Stage::Ended { joined: true } = self.stage {
            return Err(JoinError::AlreadyJoined);
        }
        if !self.is_held() {
            return Err(JoinError::Detached);
        }
        match self.stage {
            _ if joiner.thread == self.own => Err(JoinError::SelfJoin),
            Stage::Live => {
                self.stage = Stage::LiveJoined(joiner);
                Ok(JoinVerdict::Pending)
            }
            Stage::LiveJoined(_) => Err(JoinError::SecondWaiter),
            Stage::Exited(code) => {
                self.stage = Stage::Ended { joined: true };
                Ok(JoinVerdict::Done { code })
            }
            Stage::Ended { .. } => Err(JoinError::Detached),
        }
    }

    /// The pending join of `joiner` is cancelled, or its thread is gone.
    pub fn cancel_join(&mut self, joiner: Joiner) -> Result<(), LifecycleError> {
        if self.stage != Stage::LiveJoined(joiner) {
            return Err(LifecycleError::NotFound);
        }
        self.stage = Stage::Live;
        Ok(())
    }

    /// Nobody will fetch the status, although a handle remains.
    pub fn detach(&mut self) -> Result<ReleaseVerdict, JoinError> {
        match self.stage {
            Stage::Ended { joined: true } => return Err(JoinError::AlreadyJoined),
            _ if !self.is_held() => return Err(JoinError::Detached),
            Stage::Exited(_) => self.stage = Stage::Ended { joined: false },
            Stage::Live | Stage::LiveJoined(_) | Stage::Ended { .. } => {}
        }
        self.detached = true;
        Ok(ReleaseVerdict { ends_charge: !self.is_charged() })
    }

    /// Counts one more handle: the thread is detached when the last is released.
    pub fn add_handle(&mut self) -> Result<(), LifecycleError> {
        if self.handles == 0 {
            return Err(LifecycleError::NoHandle);
        }
        self.handles = self.handles.checked_add(1).ok_or(LifecycleError::TooManyHandles)?;
        Ok(())
    }

    /// A handle is given back; the last one detaches a live thread and drops a kept status.
    pub fn release_handle(&mut self) -> Result<ReleaseVerdict, LifecycleError> {
        self.handles = self.handles.checked_sub(1).ok_or(LifecycleError::NoHandle)?;
        let drops_status = self.handles == 0 && matches!(self.stage, Stage::Exited(_));
        if drops_status {
            self.stage = Stage::Ended { joined: false };
        }
        Ok(ReleaseVerdict { ends_charge: drops_status })
    }

    /// The exit code without consuming it; `None` while the thread lives.
    pub const fn exit_code(&self) -> Result<Option<i64>, JoinError> {
        match self.stage {
            Stage::Live | Stage::LiveJoined(_) => Ok(None),
            Stage::Exited(code) => Ok(Some(code)),
            Stage::Ended { joined: true } => Err(JoinError::AlreadyJoined),
            Stage::Ended { joined: false } => Err(JoinError::Detached),
        }
    }

    /// Checks what holds after every operation.
    pub fn check_invariants(&self) -> Result<(), &'static str> {
        match self.stage {
            Stage::Exited(_) if !self.is_held() => Err("a status is kept for nobody"),
            Stage::LiveJoined(joiner) if joiner.thread == self.own => {
                Err("a thread waits for itself")
            }
            _ => Ok(()),
        }
    }
}
