//! A program is loaded into a process that has no thread yet, a portion at a time.
//!
//! The image was checked from copies of its headers (`core_elf`); what is left is to map pages and to copy bytes
//! into them. [`Load::step`] does one portion, small enough for a section of kernel code, and is called until there
//! is nothing left; who calls it has a preemption point between two. Every page is charged to the process's own
//! account before it is mapped. An error leaves what was mapped so far to the end of the process, which gives it
//! back as it does for any other.
//!
//! Decided in ADR 286.

use crate::machine::{Machine, Start};
use crate::process::Process;
use abi_types::place::{CAPSET_VADDR, STACK_PAGES, STACK_TOP, START_VADDR, TLS_VADDR};
use abi_types::{CAPSET_MAGIC, CapSetEntry, CapSetHeader, START_BYTES};
use core_address::PAGE_SIZE;
use core_elf::{FileBytes, Image, Segment, Source};
use core_ledger::Frames;
use core_vm::{Access, PageRange, VmError};
use kernel_dispatch::preemption_point;
use kernel_ops::machine::{MAX_COPY_BYTES, NotMapped, Space};
use kernel_ops::map::MapError;
use kernel_ops::paid::NoMemory;
use zerocopy::IntoBytes;

/// Pages that are mapped in one portion: zeroing one takes more than 512 instructions, and what a portion takes beside that is
/// the more of it the fewer there are.
const PAGES_PER_PORTION: u64 = 16;
/// Bytes that are copied in one portion.
const COPY_BYTES: usize = MAX_COPY_BYTES;
/// Guards whose pages are set aside in one portion, each in a list of up to hundreds of regions.
const GUARDS_PER_PORTION: u64 = 2;

/// Why a program was not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file is not an executable of this system.
    Elf(core_elf::Error),
    /// There is no memory for it, or its account pays for no more.
    Memory(NoMemory),
    /// Its pages lie where others do: a stack of its own over the kernel's places for instance.
    Places,
    /// The bytes of the file were not there any more when they were copied.
    Changed,
    /// It cannot start where it says.
    Start,
}

impl From<NoMemory> for LoadError {
    fn from(error: NoMemory) -> Self {
        Self::Memory(error)
    }
}

impl From<core_elf::Error> for LoadError {
    fn from(error: core_elf::Error) -> Self {
        Self::Elf(error)
    }
}

impl From<MapError> for LoadError {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Memory(error) => Self::Memory(error),
            MapError::Vm(VmError::Full) => Self::Memory(NoMemory::Machine),
            MapError::Vm(_) => Self::Places,
        }
    }
}

/// What a portion came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Portion {
    /// There is more.
    More,
    /// The program is loaded: how its first thread starts.
    Done(Start),
}

/// Where a load has got to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Pages of a part of the image are mapped.
    Map { page: u64 },
    /// Bytes of it are copied.
    Copy { page: u64 },
    /// The pages of guards are set aside, from that number on.
    Guards(u64),
    /// The stack of the first thread.
    Stack { page: u64 },
    /// Its thread-local data: the pages, then the bytes.
    Tls { page: u64 },
    /// The bytes of it, from that one on.
    TlsBytes(u64),
    /// The time page.
    Time,
}

/// A program on its way into a process.
pub struct Load<'s, M: Machine, S: Source + ?Sized, P> {
    m: M,
    process: &'static Process<M>,
    source: &'s S,
    image: &'s Image,
    /// What is mapped after `part`: a program may have hundreds, so they are not looked for again.
    parts: P,
    /// What is being mapped.
    part: Option<Segment>,
    at: At,
}

/// A program on its way, whatever tells its parts.
impl<'s, M: Machine, S: Source + ?Sized> Load<'s, M, S, ()> {
    /// The program in `source`, of which `image` was read. What does not fit the process's account is refused
    /// before a page is mapped.
    pub fn new(
        m: M,
        process: &'static Process<M>,
        source: &'s S,
        image: &'s Image,
    ) -> Result<Load<'s, M, S, impl Iterator<Item = Segment>>, LoadError> {
        let pages = u32::try_from(pages_of(image)).unwrap_or(u32::MAX);
        let fits = process.ops.ledger.reserve(Frames, pages).map_err(NoMemory::Account)?;
        drop(fits);
        let mut parts = image.parts();
        let part = parts.next();
        Ok(Load { m, process, source, image, parts, part, at: At::Map { page: 0 } })
    }
}

impl<M: Machine, S: Source + ?Sized, P: Iterator<Item = Segment>> Load<'_, M, S, P> {
    /// Does the next portion.
    pub fn step(&mut self) -> Result<Portion, LoadError> {
        self.at = match self.at {
            At::Map { page } => match self.part {
                None => At::Guards(0),
                Some(segment) => {
                    let done = self.map(segment.start, segment.pages, page, segment.access)?;
                    match done < segment.pages {
                        true => At::Map { page: done },
                        false => At::Copy { page: 0 },
                    }
                }
            },
            At::Copy { page } => match self.part {
                Some(segment) if page < pages_with_bytes(&segment) => {
                    let (zeros, bytes) = segment.page(page);
                    self.copy(segment.start + page * PAGE_SIZE + zeros as u64, bytes)?;
                    At::Copy { page: page + 1 }
                }
                _ => {
                    self.part = self.parts.next();
                    At::Map { page: 0 }
                }
            },
            At::Guards(first) => self.set_guards_aside(first)?,
            At::Stack { page } => {
                let start = STACK_TOP - STACK_PAGES * PAGE_SIZE;
                let done = self.map(start, STACK_PAGES, page, Access::Write)?;
                match done < STACK_PAGES {
                    true => At::Stack { page: done },
                    false => At::Tls { page: 0 },
                }
            }
            At::Tls { page } => match self.image.tls() {
                None => At::Time,
                Some(tls) => {
                    let pages = tls.layout().size.div_ceil(PAGE_SIZE);
                    let done = self.map(TLS_VADDR, pages, page, Access::Write)?;
                    if done < pages { At::Tls { page: done } } else { At::TlsBytes(0) }
                }
            },
            At::TlsBytes(from) => self.copy_tls(from)?,
            At::Time => {
                self.m.map_time(&self.process.ops.space)?;
                return Ok(Portion::Done(Start {
                    entry: self.image.entry(),
                    stack_top: STACK_TOP,
                    argument: 0,
                    fs_base: self.thread_pointer(),
                }));
            }
        };
        Ok(Portion::More)
    }

    /// The thread pointer of the first thread, or 0.
    fn thread_pointer(&self) -> u64 {
        self.image.tls().map_or(0, |tls| TLS_VADDR + tls.layout().thread_pointer)
    }

    /// Maps some of `pages` pages from number `page` on; the first that is not mapped. The range is in transit from
    /// the first portion to the last.
    fn map(&self, start: u64, pages: u64, page: u64, access: Access) -> Result<u64, LoadError> {
        let range = PageRange::new(start, pages).map_err(|_| LoadError::Places)?;
        let ops = &self.process.ops;
        if page == 0 {
            ops.map.change(
                &ops.ledger,
                || preemption_point(self.m),
                |regions| regions.map_own(range, access).map(|_| ()),
            )?;
        }
        let count = (pages - page).min(PAGES_PER_PORTION);
        let portion = PageRange::from_page(range.first() + page, count);
        let portion = portion.map_err(|_| LoadError::Places)?;
        ops.space.map_new(portion, access)?;
        if page + count == pages {
            // Memory of its own: no object is held for it.
            let holds_nothing = !ops.map.settle(range);
            debug_assert!(holds_nothing, "an object is held for a program's own pages");
        }
        Ok(page + count)
    }

    /// Copies bytes of the file, at most a portion, to where the program has them.
    fn copy(&self, to: u64, bytes: FileBytes) -> Result<(), LoadError> {
        if bytes.length == 0 {
            return Ok(());
        }
        if let Some(bytes) = self.source.in_place(bytes) {
            return fill(self.m, self.process, to, bytes);
        }
        let mut copy = [0; COPY_BYTES];
        let length = usize::try_from(bytes.length).unwrap_or(COPY_BYTES);
        let copy = copy.get_mut(..length).ok_or(LoadError::Places)?;
        if !self.source.read(bytes.offset, copy) {
            return Err(LoadError::Changed);
        }
        fill(self.m, self.process, to, copy)
    }

    /// Sets the pages of some guards aside, so that nothing is ever mapped there.
    fn set_guards_aside(&self, first: u64) -> Result<At, LoadError> {
        let ops = &self.process.ops;
        for number in first..first + GUARDS_PER_PORTION {
            let Some(address) = self.image.guards().address(number) else {
                self.process.members.lock().guards = self.image.guards().clone();
                return Ok(At::Stack { page: 0 });
            };
            let range = PageRange::new(address, 1).map_err(|_| LoadError::Places)?;
            ops.map.change(
                &ops.ledger,
                || preemption_point(self.m),
                |regions| regions.reserve(range),
            )?;
        }
        Ok(At::Guards(first + GUARDS_PER_PORTION))
    }

    /// Copies some of the template of thread-local data; with the last of it the word that points to itself.
    fn copy_tls(&self, from: u64) -> Result<At, LoadError> {
        let Some(tls) = self.image.tls() else { return Ok(At::Time) };
        let rest = tls.image.part(from, COPY_BYTES as u64);
        if rest.length != 0 {
            self.copy(TLS_VADDR + tls.layout().image + from, rest)?;
            return Ok(At::TlsBytes(from + rest.length));
        }
        let pointer = self.thread_pointer();
        fill(self.m, self.process, pointer, pointer.as_bytes())?;
        Ok(At::Time)
    }
}

/// Pages that a program and its first stack take, without tables.
pub fn pages_of(image: &Image) -> u64 {
    let tls = image.tls().map_or(0, |tls| tls.layout().size.div_ceil(PAGE_SIZE));
    image.pages().saturating_add(STACK_PAGES).saturating_add(tls)
}

/// Pages of a segment up to the last with bytes of the file.
fn pages_with_bytes(segment: &Segment) -> u64 {
    match segment.bytes.length {
        0 => 0,
        length => (segment.offset + length).div_ceil(PAGE_SIZE).min(segment.pages),
    }
}

/// Writes bytes, at most a page, where the process may only read.
fn fill<M: Machine>(
    m: M,
    process: &'static Process<M>,
    to: u64,
    bytes: &[u8],
) -> Result<(), LoadError> {
    m.fill(&process.ops.space, to, bytes).map_err(|NotMapped| LoadError::Places)
}

/// Maps a read-only page, of which `contents` are the pieces it begins with.
fn map_page<M: Machine>(
    m: M,
    process: &'static Process<M>,
    at: u64,
    contents: &[&[u8]],
) -> Result<(), LoadError> {
    m.map_read_only(&process.ops.space, at)?;
    let mut to = at;
    for piece in contents {
        fill(m, process, to, piece)?;
        to += piece.len() as u64;
    }
    Ok(())
}

/// Gives a process its CapSet page, if it has capabilities.
pub fn map_capset<M: Machine>(
    m: M,
    process: &'static Process<M>,
    entries: &[CapSetEntry],
) -> Result<(), LoadError> {
    if entries.is_empty() {
        return Ok(());
    }
    let header =
        CapSetHeader { magic: CAPSET_MAGIC, count: entries.len() as u32, reserved: 0, pad: [0; 6] };
    map_page(m, process, CAPSET_VADDR, &[header.as_bytes(), entries.as_bytes()])?;
    process.has_capset();
    Ok(())
}

/// Gives a process its start page, of which so many bytes say something; its address, or 0 without any.
pub fn map_start_page<M: Machine>(
    m: M,
    process: &'static Process<M>,
    page: &[u8; START_BYTES],
    length: usize,
) -> Result<u64, LoadError> {
    if length == 0 {
        return Ok(0);
    }
    map_page(m, process, START_VADDR, &[page.get(..length).unwrap_or(page)])?;
    Ok(START_VADDR)
}
