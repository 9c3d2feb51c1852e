//! ThreadSpawner, ThreadHandle and ThreadControl: threads of the caller's process.

use super::{Calling, Object};
use crate::complete::complete_words;
use crate::party::{Fit, Party};
use crate::reaper;
use crate::sched;
use crate::system::{self, the};
use crate::thread::{self, SpawnError, Thread};
use abi_ring::{INLINE_WORDS, Outcome};
use abi_types::{CapSlot, Status};
use core::sync::atomic::Ordering;
use core_cap::Cap;
use core_sched_policy::Weight;
use core_thread::{JoinError, JoinVerdict, Joiner, ThreadKey};
use kernel_arch::context::{BadStart, Context, UserStart};
use kernel_object::thread_spawner::{Refused, Start};
use schema::thread_handle::JoinResults;
use schema_wire::Encode;
use smp_pending::Target;
use zerocopy::IntoBytes;

impl kernel_object::thread_spawner::Host for Calling<'_> {
    fn create(&mut self, start: Start) -> Result<CapSlot, Refused> {
        let process = self.caller.thread.process();
        let mut user = UserStart::new(start.entry, start.stack_top, start.fs_base).map_err(
            |bad| match bad {
                BadStart::Entry => Refused::Entry,
                BadStart::Stack => Refused::Stack,
                BadStart::FsBase => Refused::FsBase,
            },
        )?;
        user.argument = start.argument;
        // The slot first: what comes after it can be undone without anyone having seen a thread.
        let mut caps = process.caps.lock();
        let table = caps.as_mut().ok_or(Refused::Ending)?;
        let place = table.reserve(1).map_err(|_| Refused::Slots)?;
        drop(caps);
        let made = thread::spawn(process, user, Weight::DEFAULT, true);
        let mut caps = process.caps.lock();
        let table = caps.as_mut().ok_or(Refused::Ending)?;
        match made {
            Ok(key) => {
                // The promised slot, under one lock.
                table.abort(place);
                let slot = table.insert(Cap::new(Object::ThreadHandle(key)));
                drop(caps);
                slot.map_err(|_| {
                    handle_released(key);
                    Refused::Ending
                })
            }
            Err(error) => {
                table.abort(place);
                Err(match error {
                    SpawnError::Closed => Refused::Ending,
                    SpawnError::Records => Refused::Records,
                    SpawnError::StackPages => Refused::StackPages,
                    SpawnError::StackMemory => Refused::StackMemory,
                    SpawnError::Memory => Refused::Memory,
                })
            }
        }
    }
}

impl kernel_object::thread_control::Host for Calling<'_> {
    fn fs_base(&self) -> u64 {
        self.caller.thread.machine.context().fs_base()
    }

    fn set_fs_base(&mut self, fs_base: u64) -> bool {
        Context::set_own_fs_base(fs_base).is_ok()
    }

    fn exit_thread(&mut self, code: i64) {
        self.ends_with = Some(code);
    }
}

/// A handle of the caller's.
pub struct Handle<'c, 'r> {
    /// The call on it.
    pub calling: &'c mut Calling<'r>,
    /// Whose handle it is.
    pub thread: ThreadKey,
}

impl kernel_object::thread_handle::Host for Handle<'_, '_> {
    fn join(&mut self) -> Result<JoinVerdict, JoinError> {
        let target = the().thread_named(self.thread).ok_or(JoinError::Detached)?;
        let joined = Target::Join { thread: self.thread.to_bits() };
        let Some(party) = self.calling.keep(joined) else { return Err(JoinError::SecondWaiter) };
        let joiner = Joiner { thread: party.thread, user_data: u64::from(party.cell) };
        let verdict = match target.lifecycle.lock().as_mut() {
            Some(lifecycle) => lifecycle.join(joiner),
            None => Err(JoinError::Detached),
        };
        if verdict != Ok(JoinVerdict::Pending) {
            self.calling.unkeep(party);
        }
        if let Ok(JoinVerdict::Done { .. }) = verdict {
            target.process().discharge();
        }
        verdict
    }

    fn exit_code(&self) -> Result<Option<i64>, JoinError> {
        let target = the().thread_named(self.thread).ok_or(JoinError::Detached)?;
        match target.lifecycle.lock().as_ref() {
            Some(lifecycle) => lifecycle.exit_code(),
            None => Err(JoinError::Detached),
        }
    }
}

/// A join that waited is over.
pub fn complete_join(joiner: Joiner, code: i64) {
    let party = Party { thread: joiner.thread, cell: joiner.user_data as u32, room: Fit::NONE };
    let mut words = [0; INLINE_WORDS];
    let outcome = match (JoinResults { exit_code: code }).encode(words.as_mut_bytes()) {
        Ok(bytes) => Outcome { length: bytes as u32, ..Outcome::plain(Status::Ok) },
        Err(_) => Outcome::plain(Status::ResultTooLarge),
    };
    complete_words(party, &outcome, &words);
}

/// Claims a pending join for its cancel or end.
pub fn give_up_join(joined: u64, party: Party) -> bool {
    let Some(target) = the().thread_named(ThreadKey::from_bits(joined)) else { return false };
    let joiner = Joiner { thread: party.thread, user_data: u64::from(party.cell) };
    target.lifecycle.lock().as_mut().is_some_and(|life| life.cancel_join(joiner).is_ok())
}

/// A handle left its slot.
pub fn handle_released(key: ThreadKey) {
    let Some(thread) = the().thread_named(key) else { return };
    let mut life = thread.lifecycle.lock();
    let Some(lifecycle) = life.as_mut() else { return };
    let Ok(verdict) = lifecycle.release_handle() else {
        system::defect("a thread has fewer handles than were released");
    };
    let is_over = lifecycle.is_over();
    if is_over {
        *life = None;
    }
    drop(life);
    if verdict.ends_charge {
        thread.process().discharge();
    }
    if is_over {
        reaper::recycle(thread, key);
    }
}

/// The running thread ends itself, with its code.
pub fn exit_current(thread: &'static Thread, code: i64) -> ! {
    thread.exit_code.store(code, Ordering::Relaxed);
    sched::end(thread)
}
