//! A process's address space changes: pages are mapped, unmapped, protected and reserved.
//!
//! A change has three parts. The pages' use is changed in the list (`kernel_ops::map`), where they are in transit
//! from then on; page tables are changed, a few pages at a time with preemption points between; the pages are settled.
//! What other CPUs may remember of old tables has to be flushed there before its frames are free. If nobody else has
//! the space loaded, that is nothing, and the call completes at once. Otherwise the call stays pending: the change is
//! put with what the reaper has to do ([`Change`]), the CPUs are interrupted, and the last to answer wakes the reaper,
//! which frees the frames, goes on with the next pages, and completes the call with the last.
//!
//! Decided in ADR 269.

pub use crate::change::Refused;
use crate::change::{Change, What};
use crate::machine::{Machine, process_of};
use crate::process::Process;
use crate::remains::ask_for_a_step;
use crate::shared;
use abi_ring::{INLINE_WORDS, Outcome, Room};
use abi_types::Status;
use alloc::boxed::Box;
use core_address::PAGE_SIZE;
use core_fallible::try_box;
use core_sched::CpuId;
use core_tlb::CpuSet;
use core_vm::{Access, PageRange, RangeError, Region, VmError};
use kernel_dispatch::trace::point;
use kernel_dispatch::{self as dispatch, Here, preemption_point};
use kernel_ops::complete::{complete, complete_words};
use kernel_ops::machine::{Space, Taken};
use kernel_ops::map::RegionList;
use kernel_ops::object::{Calling, Objects};
use kernel_ops::paid::{NoMemory, pay_for};
use kernel_ops::party::Party;
use schema::trace_capnp::TraceEvent;
use schema_wire::Exception;
use smp_ipi::Requests;
use smp_pending::Target;
use zerocopy::IntoBytes;

/// Pages that come in between two preemption points: zeroing one takes more than 512 instructions.
const PAGES_IN: u64 = 8;
/// Pages that go out, or change their access, between two preemption points: each is a frame to be freed.
const PAGES_OUT: u64 = 12;

/// Pages that a change may have without a preemption point after them.
const PAGES_WITHOUT_A_POINT: u64 = 2;

/// Where pages are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// There and nowhere else.
    At(u64),
    /// At the lowest free place from there on, or else at the lowest at all.
    From(u64),
}

/// Why a call that changes the address space is not answered with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotNow {
    /// Nothing changed.
    Refused(Refused),
    /// The call is pending, and completes when other CPUs have answered.
    Later,
}

impl<E: Into<Refused>> From<E> for NotNow {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// How many pages so many bytes are.
pub const fn pages_of(bytes: u64) -> Result<u64, RangeError> {
    if bytes == 0 {
        return Err(RangeError::Empty);
    }
    if !bytes.is_multiple_of(PAGE_SIZE) {
        return Err(RangeError::Misaligned);
    }
    Ok(bytes / PAGE_SIZE)
}

/// Maps pages of zeros; the address of the first.
pub fn map<M: Machine>(
    calling: &mut Calling<'_, M>,
    place: Place,
    pages: u64,
    access: Access,
) -> Result<u64, NotNow> {
    let process = process_of(calling.caller.m, calling.caller.thread);
    let range = begin(calling.caller.m, process, place, pages, |regions, range| {
        regions.map_own(range, access).map(|_| ())
    })?;
    enter(calling, process, range, PAGES_IN, |part| process.ops.space.map_new(part, access))
}

/// Frees pages, mapped or reserved; of that memory object if one is meant.
pub fn unmap<M: Machine>(
    calling: &mut Calling<'_, M>,
    address: u64,
    pages: u64,
    object: Option<u64>,
) -> Result<(), NotNow> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let range = PageRange::new(address, pages)?;
    process.ops.map.change(
        &process.ops.ledger,
        || preemption_point(m),
        |regions| regions.unmap(range, object),
    )?;
    take_out(calling, process, range, What::Unmap, None)
}

/// Changes what may be done with mapped pages; of that memory object if one is meant.
pub fn protect<M: Machine>(
    calling: &mut Calling<'_, M>,
    address: u64,
    pages: u64,
    access: Access,
    object: Option<u64>,
) -> Result<(), NotNow> {
    let m = calling.caller.m;
    let process = process_of(m, calling.caller.thread);
    let range = PageRange::new(address, pages)?;
    process.ops.map.change(
        &process.ops.ledger,
        || preemption_point(m),
        |regions| regions.protect(range, access, object),
    )?;
    take_out(calling, process, range, What::Protect(access), None)
}

/// Keeps free pages without access; the address of the first.
pub fn reserve<M: Machine>(
    calling: &mut Calling<'_, M>,
    place: Place,
    pages: u64,
) -> Result<u64, Refused> {
    let process = process_of(calling.caller.m, calling.caller.thread);
    let range = begin(calling.caller.m, process, place, pages, RegionList::reserve)?;
    Ok(range.address())
}

/// The region that holds a page, or the free pages around it.
pub fn region<M: Machine>(
    calling: &Calling<'_, M>,
    page: u64,
) -> Result<Result<Region, PageRange>, Refused> {
    let process = process_of(calling.caller.m, calling.caller.thread);
    // A page that cannot be mapped is in no region.
    PageRange::from_page(page, 1)?;
    match process.ops.map.find(page) {
        Ok(region) => Ok(Ok(region)),
        Err((first, end)) => Ok(Err(core_vm::gap_around(page, first, end)?)),
    }
}

/// Finds the place and begins a change of it in the list.
pub(crate) fn begin<M: Machine>(
    m: M,
    process: &'static Process<M>,
    place: Place,
    pages: u64,
    mut change: impl FnMut(&mut RegionList, PageRange) -> Result<(), VmError>,
) -> Result<PageRange, Refused> {
    match place {
        Place::At(address) => {
            let range = PageRange::new(address, pages)?;
            process.ops.map.change(
                &process.ops.ledger,
                || preemption_point(m),
                |regions| change(regions, range),
            )?;
            Ok(range)
        }
        Place::From(hint) if !hint.is_multiple_of(PAGE_SIZE) => Err(RangeError::Misaligned.into()),
        Place::From(hint) => Ok(process.ops.map.change(
            &process.ops.ledger,
            || preemption_point(m),
            |regions| {
                let range = regions.find_free(pages, hint)?;
                change(regions, range)?;
                Ok(range)
            },
        )?),
    }
}

/// A change of a range is done; a memory object that nobody uses after it is freed.
fn settle<M: Machine>(m: M, process: &'static Process<M>, range: PageRange) {
    if process.ops.map.settle(range) {
        shared::end_idle(m, process);
    }
}

/// The first pages of `range` from number `first` on, at most so many.
fn part_of(range: PageRange, first: u64, most: u64) -> Option<PageRange> {
    let pages = range.end().checked_sub(first)?.min(most);
    PageRange::from_page(first, pages).ok()
}

/// Gives those that are due a chance after a step of that size: other operations of the pass may follow.
fn after_a_step<M: Machine>(m: M, pages: u64) {
    if pages > PAGES_WITHOUT_A_POINT {
        preemption_point(m);
    }
}

/// Puts pages into the tables by `step`, which is given at most so many of them at a time; the address of the first.
pub(crate) fn enter<M: Machine>(
    calling: &mut Calling<'_, M>,
    process: &'static Process<M>,
    range: PageRange,
    most: u64,
    mut step: impl FnMut(PageRange) -> Result<(), NoMemory>,
) -> Result<u64, NotNow> {
    point(calling.caller.m, TraceEvent::Map, || (range.address(), range.pages()));
    let mut next = range.first();
    while let Some(part) = part_of(range, next, most) {
        if let Err(error) = step(part) {
            return give_up(calling, process, range, next, error.into());
        }
        next = part.end();
        after_a_step(calling.caller.m, part.pages());
    }
    settle(calling.caller.m, process, range);
    Ok(range.address())
}

/// Takes back a mapping for which there is no memory, of whose pages those up to number `next` are in the tables.
#[cold]
fn give_up<M: Machine>(
    calling: &mut Calling<'_, M>,
    process: &'static Process<M>,
    range: PageRange,
    next: u64,
    why: Refused,
) -> Result<u64, NotNow> {
    if process.ops.map.abandon(range, next) {
        shared::end_idle(calling.caller.m, process);
    }
    preemption_point(calling.caller.m);
    let Some(entered) = part_of(range, range.first(), next - range.first()) else {
        return Err(why.into());
    };
    // Siblings may have used them: they leave as any other pages do.
    take_out(calling, process, entered, What::Unmap, Some(why))?;
    Err(why.into())
}

/// The next pages from number `next` on whose tables are to be changed, all with one thing behind them.
fn next_part<M: Objects>(
    process: &Process<M>,
    range: PageRange,
    mut next: u64,
) -> Option<PageRange> {
    while next < range.end() {
        let Ok(region) = process.ops.map.find(next) else { return None };
        if region.usage.backing().is_some() {
            return part_of(range, next, PAGES_OUT.min(region.range.end() - next));
        }
        next = region.range.end();
    }
    None
}

/// Changes the tables of some pages; `None` if as many flushes are under way as may be.
fn change_tables<M: Machine>(
    m: M,
    process: &'static Process<M>,
    part: PageRange,
    what: What,
) -> Option<<M::Space as Space>::Taken> {
    let taken = match what {
        What::Unmap => process.ops.space.unmap(part),
        What::Protect(access) => process.ops.space.protect(part, access),
    }?;
    interrupt(m, taken.interrupt());
    Some(taken)
}

/// Interrupts CPUs, so that they flush.
fn interrupt<M: Machine>(m: M, cpus: CpuSet) {
    if !cpus.is_empty() {
        point(m, TraceEvent::Shootdown, || (cpus.iter().count() as u64, 0));
    }
    for cpu in cpus.iter().filter_map(CpuId::new) {
        dispatch::request(m, &Here::now(m), cpu, Requests::TLB);
    }
}

/// Takes pages out of the tables, or changes their access there, as far as nobody else has to hear of it. From
/// there on the call is pending.
fn take_out<M: Machine>(
    calling: &mut Calling<'_, M>,
    process: &'static Process<M>,
    range: PageRange,
    what: What,
    refused: Option<Refused>,
) -> Result<(), NotNow> {
    let m = calling.caller.m;
    let event = match what {
        What::Unmap => TraceEvent::Unmap,
        What::Protect(_) => TraceEvent::Protect,
    };
    point(m, event, || (range.address(), range.pages()));
    let mut next = range.first();
    while let Some(part) = next_part(process, range, next) {
        let Some(taken) = change_tables(m, process, part, what) else {
            preemption_point(m);
            continue;
        };
        if let Err(taken) = taken.release() {
            let change = |paid| Change {
                process,
                range,
                what,
                part,
                taken: None,
                // Set with what is taken, once there is a record to keep it.
                party: Party::NOBODY,
                room: calling.room,
                refused,
                _paid: paid,
                next: None,
            };
            let paid = pay_for::<Change<M>>(&process.ops.ledger, 1);
            let record = paid.ok().and_then(|paid| try_box(change(paid)).ok());
            match record.and_then(|record| Some((record, calling.keep(Target::Memory)?))) {
                Some((record, party)) => {
                    wait_for_others(m, record, taken, party);
                    return Err(NotNow::Later);
                }
                None => release_here(m, taken),
            }
        }
        next = part.end();
        after_a_step(m, part.pages());
    }
    settle(m, process, range);
    Ok(())
}

/// Leaves the call pending until others have flushed.
fn wait_for_others<M: Machine>(
    m: M,
    mut change: Box<Change<M>>,
    taken: <M::Space as Space>::Taken,
    party: Party,
) {
    change.party = party;
    change.taken = Some(taken);
    change.process.change_began();
    if m.records().remains.add_change(&m.records().changes, change) {
        ask_for_a_step(m);
    }
}

/// Waits in the call itself until others have flushed: there is no memory to wait otherwise, or nobody who pays for it. They answer when they
/// next leave the kernel, and interrupts come in here meanwhile.
#[cold]
fn release_here<M: Machine>(m: M, taken: <M::Space as Space>::Taken) {
    let mut left = taken;
    while let Err(again) = left.release() {
        left = again;
        preemption_point(m);
    }
}

/// A change goes on, whose part no CPU remembers any more: one piece of it, by the reaper.
pub(crate) fn go_on<M: Machine>(m: M, mut change: Box<Change<M>>) {
    let next = match change.taken.take().map(Taken::release) {
        Some(Err(taken)) => {
            // Not reached: it was ready.
            change.taken = Some(taken);
            return again(m, change);
        }
        Some(Ok(())) => change.part.end(),
        None => change.part.first(),
    };
    match next_part(change.process, change.range, next) {
        Some(part) => {
            change.part = part;
            change.taken = change_tables(m, change.process, part, change.what);
            again(m, change);
        }
        None => finish(m, &change),
    }
}

fn again<M: Machine>(m: M, change: Box<Change<M>>) {
    // The reaper is here, and looks again.
    m.records().changes.lock().push(change);
}

/// The last page of a change is as it is to be: its call completes.
fn finish<M: Machine>(m: M, change: &Change<M>) {
    let Change { process, party, .. } = *change;
    settle(m, process, change.range);
    process.change_ended();
    m.records().remains.change_ended();
    let Some(refused) = change.refused else {
        return complete(m, party, &Outcome::plain(Status::Ok));
    };
    let (kind, why) = refused.exception();
    let outcome = Outcome { method: kind as u16, ..Outcome::plain(Status::Exception) };
    let mut words = [0; INLINE_WORDS];
    match Exception::new(kind, why).encode(words.as_mut_bytes()) {
        Ok(length) if change.room == Room::Inline => {
            complete_words(m, party, &Outcome { length: length as u32, ..outcome }, &words);
        }
        // The kind says it without a sentence.
        _ => complete(m, party, &outcome),
    }
}
