//! Memory objects: memory that several processes map, and what each of them keeps of one.
//!
//! How long an object lives is `core_vm`'s ([`ObjectLife`]). Here are its record, which is type-stable and named by
//! position and generation, and the [`Holding`]: what a process that pays for an object keeps. Each process that maps
//! some of it pays for all of it, and so does its maker; frames are freed by whoever takes the last holding out.
//!
//! Decided in ADR 300.

use crate::paid::{NoMemory, pay_for};
use abi_sync::atomic::AtomicU32;
use core_address::PAGE_SIZE;
use core_fallible::OutOfMemory;
use core_ledger::{Charge, Frames, KernelBytes, Ledger};
use core_vm::{Ceiling, LetGo, ObjectLife, Over, Payer};
use smp_lock::{LockClass, TicketLock};

/// The frames behind a memory object, or room for some. Made, filled and freed by one thread each; between filling and
/// freeing nothing changes.
pub trait Shared: Sync + 'static {
    /// Frames that so many pages take, with what finds them again; `None` if one object has no more than fewer.
    fn frames_for(pages: u64) -> Option<u32>;
    /// Makes what finds so many pages again, where there is nothing.
    fn begin(&self, pages: u64) -> Result<(), OutOfMemory>;
    /// Adds so many pages of zeros, at most `MAX_STEP_PAGES`; without memory some of
    /// them.
    fn fill(&self, pages: u64) -> Result<(), OutOfMemory>;
    /// Copies bytes out, at most `MAX_COPY_BYTES`, which are all there.
    fn read(&self, offset: u64, to: &mut [u8]);
    /// Frees about so many frames; whether nothing is left.
    fn free(&self, frames: u64) -> bool;
}

/// The name of a memory object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    /// Where its record is.
    pub slot: u32,
    /// Which use of the record is meant.
    pub generation: u32,
}

/// What a capability of a memory object names: the object, and what may be done with its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFacet {
    /// The object.
    pub object: ObjectKey,
    /// The most that a mapping may allow.
    pub ceiling: Ceiling,
}

/// No record.
pub const NO_RECORD: u32 = u32::MAX;

/// The record of a memory object.
pub struct SharedObject<S: Shared> {
    /// Its frames.
    pub memory: S,
    slot: u32,
    state: TicketLock<State>,
    /// The next free record.
    pub next: AtomicU32,
}

/// What changes of an object.
#[derive(Clone, Copy, Debug)]
struct State {
    generation: u32,
    /// Names its words in park keys, and its pages in lists of regions; never used again.
    identity: u64,
    pages: u64,
    /// The position of its maker.
    maker: u32,
    life: ObjectLife,
}

/// What is told of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its length.
    pub pages: u64,
    /// Pages of it that are mapped, in all processes together.
    pub mapped_pages: u64,
    /// Names its pages in lists of regions.
    pub identity: u64,
}

/// What has to happen after somebody let go of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Then {
    /// Nothing.
    Nothing,
    /// The holding of its maker, at that position, is to be taken out and ended.
    MakerLeaves {
        /// The position of the maker.
        maker: u32,
        /// Which object it holds.
        identity: u64,
    },
    /// Its frames are to be freed, by whoever asked, and then the record given back.
    Free,
}

/// Why bytes of an object are not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The object is gone.
    Gone,
    /// It ends before.
    TooShort,
}

impl<S: Shared> SharedObject<S> {
    /// A record without an object.
    pub fn new(slot: u32, memory: S) -> Self {
        let state =
            State { generation: 0, identity: 0, pages: 0, maker: 0, life: ObjectLife::NONE };
        Self {
            memory,
            slot,
            state: TicketLock::with_class(LockClass::Object, state),
            next: AtomicU32::new(NO_RECORD),
        }
    }

    /// Its position.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Makes it an object of so many pages, which are there and whose maker pays for them; its name. `None` if no name is
    /// left.
    pub fn begin(&self, identity: u64, pages: u64, maker: u32) -> Option<ObjectKey> {
        let mut state = self.state.lock();
        let generation = state.generation.checked_add(1)?;
        *state = State { generation, identity, pages, maker, life: ObjectLife::new() };
        Some(ObjectKey { slot: self.slot, generation })
    }

    /// Changes the object of that name, if it is there.
    fn with<T>(&self, name: ObjectKey, change: impl FnOnce(&mut State) -> T) -> Result<T, Over> {
        let mut state = self.state.lock();
        if state.generation != name.generation || state.life.is_over() {
            return Err(Over);
        }
        Ok(change(&mut state))
    }

    /// What it is.
    pub fn info(&self, name: ObjectKey) -> Result<ObjectInfo, Over> {
        self.with(name, |state| ObjectInfo {
            pages: state.pages,
            mapped_pages: state.life.mapped_pages(),
            identity: state.identity,
        })
    }

    /// One capability of it more.
    pub fn retain(&self, name: ObjectKey) -> Result<(), Over> {
        self.with(name, |state| state.life.retain())?
    }

    /// One capability of it less.
    pub fn release(&self, name: ObjectKey) -> Then {
        self.with(name, |state| state.then(ObjectLife::release)).unwrap_or(Then::Nothing)
    }

    /// Copies bytes out, at most `MAX_COPY_BYTES`.
    pub fn read(&self, name: ObjectKey, offset: u64, to: &mut [u8]) -> Result<(), ReadError> {
        // Under the lock: its frames stay meanwhile.
        let read = self.with(name, |state| {
            let end = offset.checked_add(to.len() as u64).ok_or(ReadError::TooShort)?;
            if end > state.pages.saturating_mul(PAGE_SIZE) {
                return Err(ReadError::TooShort);
            }
            self.memory.read(offset, to);
            Ok(())
        });
        read.unwrap_or(Err(ReadError::Gone))
    }

    /// Its record is nobody's any more.
    pub fn is_free(&self) -> bool {
        self.state.lock().life.is_over()
    }
}

impl State {
    fn then(&mut self, let_go: impl FnOnce(&mut ObjectLife) -> LetGo) -> Then {
        match let_go(&mut self.life) {
            LetGo::Keep => Then::Nothing,
            LetGo::MakerLeaves => Then::MakerLeaves { maker: self.maker, identity: self.identity },
            LetGo::Free => Then::Free,
        }
    }
}

/// What a process that pays for an object keeps.
pub struct Holding<S: Shared> {
    /// The object.
    pub object: &'static SharedObject<S>,
    /// Which one.
    pub identity: u64,
    /// Pages that the process has in its list of regions.
    pub pages: u64,
    /// Whether it made the object, and pays without mapping it.
    pub is_maker: bool,
    /// Pays for the frames.
    frames: Charge<'static, Frames>,
    /// Pays for the record.
    record: Charge<'static, KernelBytes>,
}

impl<S: Shared> Holding<S> {
    /// What a process pays for an object of so many frames.
    pub fn pay(
        ledger: &'static Ledger,
        frames: u32,
    ) -> Result<(Charge<'static, Frames>, Charge<'static, KernelBytes>), NoMemory> {
        let paid = ledger.reserve(Frames, frames)?.commit();
        Ok((paid, pay_for::<SharedObject<S>>(ledger, 1)?))
    }

    /// The holding of an object's maker.
    pub fn of_maker(
        object: &'static SharedObject<S>,
        identity: u64,
        (frames, record): (Charge<'static, Frames>, Charge<'static, KernelBytes>),
    ) -> Self {
        Self { object, identity, pages: 0, is_maker: true, frames, record }
    }

    /// The holding of a process that is about to map pages of the object with that name.
    pub(crate) fn of_mapper(
        ledger: &'static Ledger,
        object: &'static SharedObject<S>,
        name: ObjectKey,
        pages: u64,
    ) -> Result<Self, HoldError> {
        let info = object.info(name)?;
        let count = S::frames_for(info.pages).ok_or(Over)?;
        let (frames, record) = Self::pay(ledger, count)?;
        object.with(name, |state| state.life.map(pages, Payer::New))??;
        Ok(Self { object, identity: info.identity, pages, is_maker: false, frames, record })
    }

    /// The process is about to map more pages of the object with that name.
    pub(crate) fn map_more(&mut self, name: ObjectKey, pages: u64) -> Result<(), Over> {
        self.object.with(name, |state| state.life.map(pages, Payer::Known))??;
        self.pages = self.pages.saturating_add(pages);
        Ok(())
    }

    /// Pages left the list of the process, and no CPU reaches them by it.
    pub(crate) fn unmapped(&mut self, pages: u64) {
        self.object.state.lock().life.unmap(pages);
        self.pages = self.pages.saturating_sub(pages);
    }

    /// Whether the process has nothing more to pay for.
    pub(crate) fn is_idle(&self) -> bool {
        self.pages == 0 && (!self.is_maker || self.object.state.lock().life.is_unused())
    }

    /// The process pays no more, once this value is dropped.
    pub fn leave(&mut self) -> Then {
        let mut state = self.object.state.lock();
        state.life.unmap(core::mem::take(&mut self.pages));
        state.then(|life| life.leave(self.is_maker))
    }

    /// Frames that it pays for.
    pub fn frames(&self) -> u32 {
        self.frames.count()
    }

    /// Bytes of the kernel's heap that it pays for, beside its own.
    pub fn bytes(&self) -> u32 {
        self.record.count()
    }
}

impl<S: Shared> core::fmt::Debug for Holding<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} pages of object {}", self.pages, self.identity)
    }
}

/// Why a process does not hold an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldError {
    /// The object is gone.
    Gone,
    /// It holds as many as it may.
    TooMany,
    /// It cannot pay, or there is no memory.
    Memory(NoMemory),
}

impl From<Over> for HoldError {
    fn from(_: Over) -> Self {
        Self::Gone
    }
}

impl From<NoMemory> for HoldError {
    fn from(error: NoMemory) -> Self {
        Self::Memory(error)
    }
}
