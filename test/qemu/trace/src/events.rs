//! Which events there are, in which order, how many, and what they cost.

use abi_types::{ExceptionKind, Status};
use capos_rt::now_ns;
use schema::memory_capnp::MemoryAccess;
use schema::trace_capnp::{TraceCategory, TraceEvent};
use schema::virtual_memory;
use test_bare::program::{is_exception, work};
use test_bare::raw::Child;
use test_kit::{Outcome, check, check_eq, require_ok, require_some};

use crate::records::{Event, bit};
use crate::{Run, Shared};

/// Every category.
const ALL: u32 = 0xff;
/// Where pages come and go.
const AT: u64 = 0x5000_0000_0000;

/// Nobody has started it: nothing is there.
pub fn off_at_first(t: &mut Run<'_>) -> Outcome {
    let info = require_ok!(t, t.env.trace().info());
    check_eq!(t, (info.categories, info.cpus), (0, t.env.program.cpus()));
    check!(t, info.buffer_bytes >= 4096 && info.buffer_bytes % 32 == 0, "{}", info.buffer_bytes);
    for cpu in 0..info.cpus {
        check_eq!(t, t.env.each(cpu, |_| ()), Some((0, 0)));
    }
    let stopped = require_ok!(t, t.env.trace().stop());
    check_eq!(t, (stopped.events, stopped.lost), (0, 0));
    // A mark that nobody asked for is nothing.
    require_ok!(t, t.env.trace().mark(5));
    check_eq!(t, t.env.each(0, |_| ()), Some((0, 0)));
    Ok(())
}

/// Calls that are measured together.
const CALLS: u64 = 50;

/// The shortest of some runs of calls.
fn cost(shared: &Shared) -> u64 {
    let run = |_| {
        let began = now_ns();
        for _ in 0..CALLS {
            let _ = shared.call_echo();
        }
        now_ns() - began
    };
    (0..8).map(run).min().unwrap_or(0)
}

/// After a session calls cost what they cost before.
pub fn off_costs_nothing(t: &mut Run<'_>) -> Outcome {
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, where time is instructions");
    }
    let _ = cost(t.env);
    let before = cost(t.env);
    require_ok!(t, t.env.trace().start(ALL));
    let during = cost(t.env);
    require_ok!(t, t.env.trace().stop());
    let after = cost(t.env);
    t.metric("50 calls, off", after, "instructions");
    t.metric("50 calls, on", during, "instructions");
    // The clock is rounded; an instruction for each call would be more than that.
    check!(t, after.abs_diff(before) < CALLS, "{after} after a session, {before} before");
    check!(t, during > before, "{during} while it records, {before} before");
    Ok(())
}

/// Each method with arguments that it does not take.
pub fn wrong_arguments(t: &mut Run<'_>) -> Outcome {
    use ExceptionKind::InvalidArgument;
    for categories in [0, 1 << 8, u32::MAX, 1 << 31 | 1] {
        let started = t.env.trace().start(categories);
        check!(t, is_exception(&started, InvalidArgument, "TraceCategory"), "{categories:#x}");
    }
    check_eq!(t, t.env.trace().info().map(|info| info.categories), Ok(0));
    let cpus = t.env.program.cpus();
    for cpu in [cpus, cpus + 1, 1 << 16, u32::MAX] {
        let mut client = t.env.trace();
        let read = client.read(cpu, 0, 4096).map(|_| ());
        check!(t, is_exception(&read, InvalidArgument, "no such CPU"), "CPU {cpu}");
    }
    for capacity in [0, 1, 31] {
        let mut client = t.env.trace();
        let read = client.read(0, 0, capacity).map(|_| ());
        check!(t, is_exception(&read, InvalidArgument, "32 bytes"), "{capacity} bytes");
    }
    // A position past the end, and a capacity that is larger than any message.
    for position in [1 << 20, 1 << 32, u64::MAX] {
        let mut client = t.env.trace();
        let reading = require_ok!(t, client.read(0, position, u32::MAX));
        let read = require_ok!(t, reading.get());
        check_eq!(t, (read.events.len(), read.next), (0, position));
    }
    Ok(())
}

fn nothing(_: &Child) -> i64 {
    work(10);
    0
}

/// Something of everything that is recorded.
fn something_of_everything(shared: &Shared) -> Option<()> {
    let program = &shared.program;
    if shared.call_echo() != Status::Ok {
        return None;
    }
    // A sleep whose time has come before it is armed arms nothing: a CPU of a busy host may stand still for that long.
    for ns in [100_000, 10_000_000, 100_000_000] {
        program.sleep(ns);
    }
    let memory = shared.named("memory");
    let mut memory = virtual_memory::Client::new(program.io().caller(), memory);
    memory.map(AT, 0x2000, MemoryAccess::Write, true).ok()?;
    memory.protect(AT, 0x2000, MemoryAccess::Read).ok()?;
    memory.unmap(AT, 0x2000).ok()?;
    // Another CPU, if there is one, is asked to run it.
    let handle = program.spawn(0, nothing, 0).ok()?;
    program.finish(handle).ok()?;
    shared.trace().mark(0xfeed).ok()
}

/// Each category that has events is seen, with what happened.
pub fn each_category(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.trace().start(ALL));
    require_some!(t, something_of_everything(t.env));
    let stopped = require_ok!(t, t.env.trace().stop());
    check_eq!(t, stopped.lost, 0);
    check_eq!(t, t.env.count(|_| true), stopped.events);
    let counts = [
        TraceEvent::Switched,
        TraceEvent::Woke,
        TraceEvent::Call,
        TraceEvent::Answer,
        TraceEvent::HandOff,
        TraceEvent::Map,
        TraceEvent::Unmap,
        TraceEvent::Protect,
        TraceEvent::Armed,
        TraceEvent::Fired,
        TraceEvent::Expired,
        TraceEvent::Mark,
    ]
    .map(|what| (what as u16, t.env.count(|event| event.is(what))));
    for (what, count) in counts {
        check!(t, count > 0 && count < 1000, "event {what}: {count} times");
    }
    // One CPU asks nobody.
    let interrupts = t.env.count(|event| event.is(TraceEvent::Interrupt));
    check!(t, interrupts > 0 || t.env.program.cpus() == 1, "no CPU was interrupted");
    let entries = t.env.count(|event| event.is(TraceEvent::Enter));
    // Release images leave them out.
    check!(t, entries == 0 || entries > 5, "{entries} entries");
    let of_map = |event: &Event| event.is(TraceEvent::Map) && (event.a, event.b) == (AT, 2);
    check_eq!(t, t.env.count(of_map), 1);
    let of_mark = |event: &Event| event.is(TraceEvent::Mark) && event.a == 0xfeed;
    check_eq!(t, t.env.count(of_mark), 1);
    Ok(())
}

/// What was not asked for is not recorded; contexts are accepted and give nothing.
pub fn only_what_was_asked_for(t: &mut Run<'_>) -> Outcome {
    let alone = t.env.program.cpus() == 1;
    // Of release images, and of one CPU.
    let may_be_empty = [
        TraceCategory::Syscall as u16,
        if alone { TraceCategory::Interrupt } else { TraceCategory::Syscall } as u16,
    ];
    for category in 0..8 {
        require_ok!(t, t.env.trace().start(1 << category));
        check_eq!(t, t.env.trace().info().map(|info| info.categories), Ok(1 << category));
        require_some!(t, something_of_everything(t.env));
        require_ok!(t, t.env.trace().stop());
        let others = t.env.count(|event| event.category != category);
        let all = t.env.count(|_| true);
        check_eq!(t, others, 0);
        if category == TraceCategory::Context as u16 {
            check_eq!(t, all, 0);
        } else if !may_be_empty.contains(&category) {
            check!(t, all > 0, "category {category} has no event");
        }
    }
    Ok(())
}

/// Switches that all CPUs have counted.
fn switches_counted(shared: &Shared) -> Option<u64> {
    (0..shared.program.cpus()).map(|cpu| Some(shared.program.counters(cpu)?.switches)).sum()
}

/// As many switches are recorded as are counted.
pub fn switches(t: &mut Run<'_>) -> Outcome {
    let _ = t.env.call_echo();
    let before = require_some!(t, switches_counted(t.env));
    require_ok!(t, t.env.trace().start(bit(TraceCategory::Scheduler)));
    for _ in 0..CALLS {
        check_eq!(t, t.env.call_echo(), Status::Ok);
    }
    t.env.program.sleep(200_000);
    require_ok!(t, t.env.trace().stop());
    let after = require_some!(t, switches_counted(t.env));
    let recorded = t.env.count(|event| event.is(TraceEvent::Switched));
    let counted = after - before;
    if t.env.program.cpus() == 1 {
        check_eq!(t, recorded, counted);
        check_eq!(t, recorded, 2 * CALLS + 2);
    } else {
        // Other CPUs may switch between two looks.
        check!(t, recorded <= counted, "{recorded} switches recorded, {counted} counted");
        check!(t, recorded >= 2 * CALLS, "{recorded} switches recorded for {CALLS} calls");
    }
    Ok(())
}

/// A call with its hand-offs is these events and no other, one after the other.
pub fn call_in_its_order(t: &mut Run<'_>) -> Outcome {
    if t.env.program.cpus() > 1 {
        return t.skip("one CPU, where nothing else happens meanwhile");
    }
    let _ = t.env.call_echo();
    let categories = bit(TraceCategory::Scheduler) | bit(TraceCategory::Ipc);
    require_ok!(t, t.env.trace().start(categories));
    check_eq!(t, t.env.call_echo(), Status::Ok);
    require_ok!(t, t.env.trace().stop());
    let (mut events, mut count) = ([None; 8], 0_usize);
    let seen = t.env.each(0, |event| {
        if let Some(place) = events.get_mut(count) {
            *place = Some(event);
        }
        count += 1;
    });
    check_eq!(t, (seen, count), (Some((6, 0)), 6));
    let kinds = [
        TraceEvent::Call,
        TraceEvent::HandOff,
        TraceEvent::Switched,
        TraceEvent::Answer,
        TraceEvent::HandOff,
        TraceEvent::Switched,
    ];
    let first = require_some!(t, events[0]);
    let (me, server) = (u64::from(first.thread), first.a);
    check!(t, me != server, "thread {me} calls itself");
    for (number, what) in kinds.into_iter().enumerate() {
        let event = require_some!(t, events[number]);
        let (from, to) = if number < 3 { (me, server) } else { (server, me) };
        check!(t, event.is(what), "event {number} is {event:?}");
        check_eq!(t, (u64::from(event.thread), event.a), (from, to));
    }
    Ok(())
}

/// A buffer that is full keeps the beginning, and says how many had no place.
pub fn full_buffer(t: &mut Run<'_>) -> Outcome {
    const MORE: u64 = 100;
    let started = require_ok!(t, t.env.trace().start(bit(TraceCategory::User)));
    let room = u64::from(started.buffer_bytes / 32);
    // One CPU's; the thread may go to another on the way, so each is filled.
    let cpus = u64::from(t.env.program.cpus());
    let marks = room * cpus + MORE;
    for value in 0..marks {
        require_ok!(t, t.env.trace().mark(value));
    }
    let stopped = require_ok!(t, t.env.trace().stop());
    check_eq!(t, stopped.events + stopped.lost, marks);
    check!(t, stopped.lost >= MORE, "{} of {marks} lost", stopped.lost);
    let (mut events, mut lost) = (0, 0);
    for cpu in 0..t.env.program.cpus() {
        let mut next = 0;
        let mut in_order = true;
        let seen = t.env.each(cpu, |event| {
            in_order &= event.a >= next;
            next = event.a + 1;
        });
        let (here, dropped) = require_some!(t, seen);
        check!(t, in_order && here <= room, "CPU {cpu}: {here} events, in order: {in_order}");
        check!(t, dropped == 0 || here == room, "CPU {cpu} lost {dropped} and has {here}");
        events += here;
        lost += dropped;
    }
    check_eq!(t, (events, lost), (stopped.events, stopped.lost));
    Ok(())
}
