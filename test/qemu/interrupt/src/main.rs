//! Interrupt lines as a program has them. The kernel of this suite has devices that interrupt every millisecond.
#![no_std]
#![no_main]

use abi_types::{CapSlot, ExceptionKind, Status};
use capos_rt::caller::Caller;
use capos_rt::io::status_of;
use capos_rt::process::Processes;
use capos_rt::{Env, Error, now_ns};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use schema::interrupt::{self, WaitParams};
use schema::interrupt_capnp::TriggerMode;
use test_bare::program::{Program, Sibling, is_exception, work};
use test_bare::raw::Child;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};

capos_rt::main!(main);

/// Between two interrupts of a device.
const PERIOD_NS: u64 = 1_000_000;
/// Interrupts of a line in a millisecond at most.
const BURST: u64 = 32;

/// What the tests share.
struct Shared {
    program: Program,
    edge: CapSlot,
    again: CapSlot,
    level: CapSlot,
    /// Interrupts that a device makes in a period.
    per_period: u64,
}

type Run<'a> = T<'a, Shared>;

impl Shared {
    fn line(&self, slot: CapSlot) -> interrupt::Client<Caller<'static>> {
        interrupt::Client::new(self.program.io().caller(), slot)
    }

    fn total(&self, slot: CapSlot) -> u64 {
        self.line(slot).info().map_or(u64::MAX, |info| info.total)
    }

    /// Takes what nobody was told of, from a line that is masked.
    fn drain(&self, slot: CapSlot) -> bool {
        let io = self.program.io();
        let Ok(pending) = io.start::<interrupt::methods::Wait>(slot, &WaitParams {}) else {
            return false;
        };
        io.flush();
        let is_told = io.is_done(&pending) || io.cancel(&pending).is_ok();
        let _ = io.wait(pending, &mut [0; 16]);
        is_told
    }

    fn is_exact(&self) -> bool {
        self.program.cpus() == 1
    }
}

static SIBLINGS: [Sibling; 2] = [const { Sibling::new() }; 2];

const SUITE: Suite<Shared> = Suite::new(&[
    Test::new("interrupt.masked_at_first", masked_at_first),
    Test::new("interrupt.each_is_counted", each_is_counted),
    Test::new("interrupt.counted_together", counted_together),
    Test::new("interrupt.one_waits", one_waits),
    Test::new("interrupt.by_level", by_level),
    Test::new("interrupt.never_acknowledged", never_acknowledged),
    Test::new("interrupt.storm", storm),
    Test::new("interrupt.unmasked_in_a_loop", unmasked_in_a_loop),
    Test::new("interrupt.end_of_its_driver", end_of_its_driver),
    Test::new("interrupt.released", released),
]);

fn main(env: &'static Env) -> Result<i64, Error> {
    if let Some(short) = env.caps.named("short") {
        return Ok(serve_three(env, short));
    }
    let program = Program::new(env, &SIBLINGS)?;
    let named = |name| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let (edge, again, level) = (named("edge"), named("again"), named("level"));
    test_user::run_with(env, &SUITE, &mut Shared { program, edge, again, level, per_period: 1 })
}

/// A driver that ends after three interrupts, with its line enabled: how many there were since boot.
fn serve_three(env: &Env, short: CapSlot) -> i64 {
    let line = || interrupt::Client::new(env.io.caller(), short);
    let mut left = 3;
    if line().set_enabled(true).is_err() {
        return -1;
    }
    while left > 0 {
        match line().wait() {
            Ok(waited) => left -= waited.count.min(left),
            Err(_) => return -2,
        }
    }
    // As many, or one more that came meanwhile.
    line().info().map_or(-3, |info| info.total as i64)
}

/// A device that interrupts is not heard, and its line says what it is.
fn masked_at_first(t: &mut Run<'_>) -> Outcome {
    t.env.program.sleep(3 * PERIOD_NS);
    for (slot, line, trigger) in [
        (t.env.edge, 20, TriggerMode::Edge),
        (t.env.again, 20, TriggerMode::Edge),
        (t.env.level, 21, TriggerMode::Level),
    ] {
        let info = require_ok!(t, t.env.line(slot).info());
        check!(t, info.trigger == trigger, "line {line}");
        check_eq!(t, (info.line, info.enabled, info.total), (line, false, 0));
    }
    Ok(())
}

/// So many waits, one interrupt each, in as much time as the device takes for them.
///
/// Where time is instructions, a device of the emulator fires once more for each period: its timer comes at the very tick
/// of its deadline, which it takes for not there yet.
fn each_is_counted(t: &mut Run<'_>) -> Outcome {
    const WAITS: u64 = 40;
    require_ok!(t, t.env.line(t.env.edge).set_enabled(true));
    // The first period has begun before.
    for _ in 0..2 {
        let first = require_ok!(t, t.env.line(t.env.edge).wait());
        check!(t, first.count >= 1, "a wait of nothing");
    }
    let (before, began) = (t.env.total(t.env.edge), now_ns());
    let mut counted = 0;
    for _ in 0..WAITS {
        let waited = require_ok!(t, t.env.line(t.env.edge).wait());
        check!(t, waited.count >= 1, "a wait of nothing");
        counted += waited.count;
    }
    let took = now_ns() - began;
    let total = t.env.total(t.env.edge) - before;
    require_ok!(t, t.env.line(t.env.edge).set_enabled(false));
    check!(t, t.env.drain(t.env.edge), "a wait is neither told nor given up");
    if t.env.is_exact() {
        check_eq!(t, (counted, total), (WAITS, WAITS));
        let per_period = (WAITS * PERIOD_NS + took / 2) / took;
        t.env.per_period = per_period;
        check!(t, (1..=2).contains(&per_period), "{per_period} a period");
        let off = (took * per_period).abs_diff(WAITS * PERIOD_NS);
        check!(t, off < PERIOD_NS / 10, "{took} ns for {WAITS} interrupts");
        t.metric("off after 40 interrupts", off, "ns");
    }
    Ok(())
}

/// What comes between two waits is told at once.
fn counted_together(t: &mut Run<'_>) -> Outcome {
    let before = t.env.total(t.env.edge);
    require_ok!(t, t.env.line(t.env.edge).set_enabled(true));
    t.env.program.sleep(10 * PERIOD_NS);
    let waited = require_ok!(t, t.env.line(t.env.edge).wait());
    require_ok!(t, t.env.line(t.env.edge).set_enabled(false));
    let total = t.env.total(t.env.edge) - before;
    check!(t, waited.count <= total, "{} of {total} told", waited.count);
    if t.env.is_exact() {
        let least = 10 * t.env.per_period - 1;
        check!(t, (least..=least + 3).contains(&waited.count), "{} in ten periods", waited.count);
    }
    check!(t, t.env.drain(t.env.edge), "a wait is neither told nor given up");
    Ok(())
}

/// One call waits, by whichever capability of the line; it is given up by CANCEL.
fn one_waits(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    let pending = require_ok!(t, io.start::<interrupt::methods::Wait>(t.env.edge, &WaitParams {}));
    io.flush();
    check!(t, !io.is_done(&pending), "a line that is masked");
    for slot in [t.env.edge, t.env.again] {
        let another = t.env.line(slot).wait().map(|waited| waited.count);
        check!(t, is_exception(&another, ExceptionKind::Overloaded, "another call"), "it waits");
    }
    check_eq!(t, io.cancel(&pending), Ok(()));
    let mut words = [0; 16];
    check_eq!(t, status_of(&io.wait(pending, &mut words)), Status::Cancelled);
    require_ok!(t, t.env.line(t.env.again).set_enabled(true));
    require_ok!(t, t.env.line(t.env.edge).wait());
    require_ok!(t, t.env.line(t.env.again).set_enabled(false));
    Ok(())
}

/// By level a device that wants attention interrupts once for each acknowledgement.
fn by_level(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.line(t.env.level).set_enabled(true));
    check_eq!(t, t.env.line(t.env.level).wait().map(|waited| waited.count), Ok(1));
    t.env.program.sleep(2 * PERIOD_NS);
    check_eq!(t, t.env.total(t.env.level), 1);
    for number in 2..6 {
        require_ok!(t, t.env.line(t.env.level).acknowledge());
        check_eq!(t, t.env.line(t.env.level).wait().map(|waited| waited.count), Ok(1));
        check_eq!(t, t.env.total(t.env.level), number);
    }
    Ok(())
}

/// A driver that never acknowledges: nothing more comes, and everything else goes on.
fn never_acknowledged(t: &mut Run<'_>) -> Outcome {
    let before = t.env.total(t.env.level);
    for _ in 0..5 {
        require_ok!(t, t.env.line(t.env.level).set_enabled(false));
        require_ok!(t, t.env.line(t.env.level).set_enabled(true));
    }
    t.env.program.sleep(5 * PERIOD_NS);
    check_eq!(t, t.env.total(t.env.level), before);
    Ok(())
}

static IS_OVER: AtomicU32 = AtomicU32::new(0);
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Computes, and counts.
fn compute(_: &Child) -> i64 {
    while IS_OVER.load(Ordering::Relaxed) == 0 {
        work(1000);
        TURNS.fetch_add(1, Ordering::Relaxed);
    }
    0
}

/// What a sibling computes while the driver does something again and again for some periods; how many interrupts there
/// were.
fn beside(t: &mut Run<'_>, periods: u64, mut act: impl FnMut(&Shared)) -> Result<(u64, u64), ()> {
    IS_OVER.store(0, Ordering::Relaxed);
    TURNS.store(0, Ordering::Relaxed);
    let Ok(handle) = t.env.program.spawn(0, compute, 0) else { return Err(()) };
    let (before, until) = (t.env.total(t.env.level), now_ns() + periods * PERIOD_NS);
    while now_ns() < until {
        act(t.env);
    }
    let interrupts = t.env.total(t.env.level) - before;
    IS_OVER.store(1, Ordering::Relaxed);
    let _ = t.env.program.finish(handle);
    Ok((interrupts, TURNS.load(Ordering::Relaxed)))
}

/// A device that is never quiet, and a driver that acknowledges in a loop: it is heard so often in a millisecond, and a
/// sibling has its share of the CPU.
fn storm(t: &mut Run<'_>) -> Outcome {
    const PERIODS: u64 = 60;
    let quiet = require_ok!(t, beside(t, PERIODS, |_| work(100)));
    let loud = require_ok!(
        t,
        beside(t, PERIODS, |shared| {
            let _ = shared.line(shared.level).acknowledge();
        })
    );
    t.metric("interrupts in 60 ms", loud.0, "interrupts");
    if t.env.is_exact() {
        check!(t, loud.0 <= (PERIODS + 1) * BURST, "{} interrupts in {PERIODS} ms", loud.0);
        check!(t, loud.0 > 2 * BURST, "{} interrupts: no storm", loud.0);
        // A fifteenth is the interrupts'; a slice more or less is the scheduler's.
        let least = quiet.1 * 7 / 10;
        check!(t, loud.1 >= least, "{} turns beside a storm, {} without", loud.1, quiet.1);
    }
    Ok(())
}

/// A driver that masks and unmasks in a loop gains nothing by it.
fn unmasked_in_a_loop(t: &mut Run<'_>) -> Outcome {
    const PERIODS: u64 = 20;
    let seen = require_ok!(
        t,
        beside(t, PERIODS, |shared| {
            let _ = shared.line(shared.level).set_enabled(false);
            let _ = shared.line(shared.level).set_enabled(true);
            let _ = shared.line(shared.level).acknowledge();
        })
    );
    require_ok!(t, t.env.line(t.env.level).set_enabled(false));
    if t.env.is_exact() {
        check!(t, seen.0 <= (PERIODS + 1) * BURST, "{} interrupts in {PERIODS} ms", seen.0);
    }
    Ok(())
}

/// A driver ends with its line enabled: it is masked, and the next instance finds it as the first did, with what was
/// counted before.
fn end_of_its_driver(t: &mut Run<'_>) -> Outcome {
    let processes = require_ok!(t, Processes::of(&t.env.program.env.caps));
    let mut before = 0;
    for _ in 0..3 {
        let io = t.env.program.io();
        let child = require_ok!(t, processes.start_entry(io, "mortal"));
        let ended = require_ok!(t, child.wait(io));
        require_ok!(t, child.release(io));
        let total = ended.exit_code;
        // Three, and what came before it had ended.
        check!(t, (before + 3..before + 5).contains(&total) || !t.env.is_exact(), "{total}");
        check!(t, total >= before + 3, "{total} after {before}");
        before = total;
        t.env.program.sleep(4 * PERIOD_NS);
    }
    Ok(())
}

/// A capability that is released is gone; the line stays as long as there is another.
fn released(t: &mut Run<'_>) -> Outcome {
    require_ok!(t, t.env.line(t.env.edge).set_enabled(true));
    check_eq!(t, t.env.program.release(t.env.edge), Ok(()));
    check!(t, t.env.line(t.env.edge).wait().is_err(), "a slot that is empty");
    require_ok!(t, t.env.line(t.env.again).wait());
    check_eq!(t, t.env.program.release(t.env.again), Ok(()));
    Ok(())
}
