//! Consoles by interrupt: what is sent and what arrives, on the port looped back to itself and on a keyboard
//! whose controller is told what was typed.
#![no_std]
#![no_main]

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use kernel_arch::stop::Claim;
use kernel_arch::{console, cpu, stop, time};
use kernel_sys::{Machine, smp};
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require};

kernel_sys::kernel_main!(
    main,
    syscall = no_call,
    user_fault = kernel_sys::user::fault,
    timer = fired
);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("console.interrupts", interrupts),
    Test::new("console.loop", looped),
    Test::new("console.room", room),
    Test::new("console.overrun", overrun),
    Test::new("console.dropped", dropped),
    Test::new("console.keyboard", keyboard),
    Test::new("console.waits-for-nothing", waits_for_nothing),
    Test::new("console.held-at-the-end", held_at_the_end),
]);

fn main(machine: &'static Machine) -> ! {
    console::on_input(note_input);
    console::on_room(note_room);
    test_kernel::run(machine, &SUITE)
}

fn no_call(_: u64, _: u64, _: u64) -> u64 {
    0
}

fn fired(_: &kernel_arch::trap::TrapFrame) {}

static INPUT: AtomicU64 = AtomicU64::new(0);
static ROOM: AtomicU64 = AtomicU64::new(0);

fn note_input() {
    INPUT.fetch_add(1, Ordering::Relaxed);
}

fn note_room() {
    ROOM.fetch_add(1, Ordering::Relaxed);
}

fn interrupts(t: &mut T<'_, Env>) -> Outcome {
    check!(t, t.env.consoles.serial, "the port does not interrupt");
    check!(t, t.env.consoles.keyboard, "the keyboard does not interrupt");
    Ok(())
}

/// Halts until `is_done`, a second at most; whether it is.
fn wait_until(mut is_done: impl FnMut() -> bool) -> bool {
    let end = time::clock_ns() + 1_000_000_000;
    loop {
        if is_done() {
            return true;
        }
        let now = time::clock_ns();
        if now >= end {
            return false;
        }
        time::arm(now + 10_000_000);
        cpu::wait_for_interrupt();
    }
}

/// Takes what was typed, until nothing has come for some interrupts: the last byte of a loop is late on a machine
/// whose CPUs race.
fn drain() {
    loop {
        let before = console::input_counts().arrived;
        for _ in 0..3 {
            time::arm(time::clock_ns() + 10_000_000);
            cpu::wait_for_interrupt();
        }
        while console::receive(&mut [0; 64]) > 0 {}
        if console::input_counts().arrived == before {
            return;
        }
    }
}

/// Submits all of a text; how often there was no room.
fn submit_all(mut text: &[u8]) -> usize {
    let mut waits = 0;
    while !text.is_empty() {
        let taken = console::submit(text);
        text = &text[taken..];
        if taken == 0 {
            waits += 1;
            let before = ROOM.load(Ordering::Relaxed);
            if !wait_until(|| ROOM.load(Ordering::Relaxed) > before) {
                return usize::MAX;
            }
        }
    }
    waits
}

const LINE: &[u8; 64] = b"the quick brown fox jumps over the lazy dog, and back, 16 times\n";

/// What is sent comes back, all of it and in order, while nobody looks at the port.
fn looped(t: &mut T<'_, Env>) -> Outcome {
    // What waits goes to the line first.
    require!(t, wait_until(console::is_sent), "the line takes nothing");
    let before = INPUT.load(Ordering::Relaxed);
    console::set_loop_back(true);
    let mut received = [0u8; 4 * 65];
    let mut length = 0;
    let mut expected = 0;
    // As much at a time as the port's queue holds.
    for piece in LINE.chunks(15).cycle().take(4 * LINE.chunks(15).len()) {
        check_eq!(t, submit_all(piece), 0);
        expected += piece.len() + usize::from(piece.ends_with(b"\n"));
        wait_until(|| {
            length += console::receive(&mut received[length..]);
            length >= expected
        });
    }
    console::set_loop_back(false);
    check_eq!(t, length, received.len());
    for line in received.chunks(65) {
        check!(t, line.starts_with(&LINE[..63]) && line.ends_with(b"\r\n"));
    }
    check!(t, INPUT.load(Ordering::Relaxed) > before, "nobody was told");
    check_eq!(t, (console::overruns(), console::input_counts().dropped), (0, 0));
    Ok(())
}

/// More than the queue holds: it is refused, and there is word when it is worth trying again. What the kernel itself
/// prints fills the queue, of which it sends little at once; what is submitted would go to a port as fast as this one.
fn room(t: &mut T<'_, Env>) -> Outcome {
    let mut waits = 0;
    let mut text = [0; console::MAX_SUBMIT];
    text.chunks_mut(LINE.len()).for_each(|line| line.copy_from_slice(LINE));
    for _ in 0..4 {
        for _ in 0..384 {
            console::print_bytes(&text);
        }
        waits += submit_all(&text);
    }
    check!(t, (1..100).contains(&waits), "refused {waits} times");
    check_eq!(t, ROOM.load(Ordering::Relaxed), waits as u64);
    Ok(())
}

/// Bytes that arrive while interrupts are off and the port's queue is full are lost, and that is counted.
fn overrun(t: &mut T<'_, Env>) -> Outcome {
    // What waits goes to the line first.
    require!(t, wait_until(console::is_sent), "the line takes nothing");
    console::set_loop_back(true);
    let before = console::overruns();
    check_eq!(t, submit_all(LINE), 0);
    wait_until(|| console::overruns() > before && console::is_sent());
    drain();
    console::set_loop_back(false);
    check!(t, console::overruns() > before, "nothing was lost");
    Ok(())
}

/// Nobody reads: the oldest stay, the rest is dropped and counted.
fn dropped(t: &mut T<'_, Env>) -> Outcome {
    require!(t, wait_until(console::is_sent), "the line takes nothing");
    drain();
    let before = console::input_counts();
    console::set_loop_back(true);
    // So many bytes at a time that the port loses none.
    for round in 1..=100 {
        check_eq!(t, submit_all(b"0123456789abcde"), 0);
        let expected = before.arrived + 15 * round;
        require!(t, wait_until(|| console::input_counts().arrived >= expected), "round {round}");
    }
    console::set_loop_back(false);
    let after = console::input_counts();
    check_eq!(t, after.arrived - before.arrived, 1500);
    check_eq!(t, after.dropped - before.dropped, 1500 - 1024);
    let mut first = [0; 15];
    check_eq!(t, console::receive(&mut first), 15);
    check_eq!(t, &first, b"0123456789abcde");
    while console::receive(&mut [0; 64]) > 0 {}
    Ok(())
}

/// Scan codes become bytes: "Hi", an arrow, return.
fn keyboard(t: &mut T<'_, Env>) -> Outcome {
    let before = INPUT.load(Ordering::Relaxed);
    let codes = [0x2a, 0x23, 0xa3, 0xaa, 0x17, 0x97, 0xe0, 0x48, 0xe0, 0xc8, 0x1c, 0x9c];
    let expected = b"Hi\x1b[A\r";
    let mut received = [0u8; 16];
    let mut length = 0;
    for code in codes {
        console::echo_scan_code(code);
        // One key at a time: the controller holds one code.
        time::arm(time::clock_ns() + 1_000_000);
        cpu::wait_for_interrupt();
        length += console::receive(&mut received[length..]);
    }
    wait_until(|| {
        length += console::receive(&mut received[length..]);
        length >= expected.len()
    });
    check_eq!(t, &received[..length], &expected[..]);
    check!(t, INPUT.load(Ordering::Relaxed) > before, "nobody was told");
    Ok(())
}

/// A piece of a program's text takes a bounded time: the port and the screen are not waited for.
fn waits_for_nothing(t: &mut T<'_, Env>) -> Outcome {
    if !t.env.words().has("count") {
        return t.skip("counts instructions");
    }
    let newlines = [b'\n'; console::MAX_SUBMIT];
    let letters = [b'x'; console::MAX_SUBMIT];
    let mut most = 0;
    for text in [newlines, letters].iter().cycle().take(400) {
        let before = time::ticks();
        let taken = console::submit(text);
        most = most.max(time::ticks() - before);
        if taken == 0 {
            let room = ROOM.load(Ordering::Relaxed);
            require!(t, wait_until(|| ROOM.load(Ordering::Relaxed) > room), "no word of room");
        }
    }
    check!(t, most < 20_000, "{most} instructions");
    t.metric("a portion", most, "instructions");
    Ok(())
}

static IS_HELD: AtomicBool = AtomicBool::new(false);

/// A value that takes for ever to print, so that its printer holds the console.
struct Endless;

impl core::fmt::Display for Endless {
    fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        IS_HELD.store(true, Ordering::Relaxed);
        loop {
            cpu::relax();
        }
    }
}

fn hold() {
    kernel_arch::println!("{Endless}");
}

/// Whoever ends the run prints, although a CPU that it has stopped holds the console. The last test: the
/// others run no more.
fn held_at_the_end(t: &mut T<'_, Env>) -> Outcome {
    if t.env.cpus().len() == 1 {
        return t.skip("takes two CPUs");
    }
    require!(t, smp::start_on(1, hold), "cpu 1 is not there");
    while !IS_HELD.load(Ordering::Relaxed) {
        cpu::relax();
    }
    check!(t, stop::claim() == Claim::First);
    let others = t.env.cpus().len() - 1;
    check_eq!(t, stop::stop_others(), (others, others));
    kernel_arch::println!("the end is told");
    check!(t, console::is_sent());
    Ok(())
}
