//! U4: a point of a trace that is off costs at most three instructions.
//!
//! Counted by the CPU's single-step flag (Intel SDM vol. 3, 18.3.1.4), as the difference between
//! functions with and without points, which says nothing about calling them.
use smp_trace::{Buffer, Control, RECORD_WORDS, Record};
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNT: AtomicU64 = AtomicU64::new(0);
static CONTROL: Control = Control::new();
static BUFFER: Buffer<[AtomicU64; 16 * RECORD_WORDS]> =
    Buffer::new([const { AtomicU64::new(0) }; 16 * RECORD_WORDS]);

unsafe extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

extern "C" fn count_one(_: i32) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

fn instructions(f: extern "C" fn(u64) -> u64) -> u64 {
    const SIGTRAP: i32 = 5;
    COUNT.store(0, Ordering::Relaxed);
    // SAFETY: the handler only adds to an atomic.
    unsafe { signal(SIGTRAP, count_one as *const () as usize) };
    // SAFETY: sets the single-step flag, which changes no register and no memory of ours.
    unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    std::hint::black_box(f(7));
    // SAFETY: clears it.
    unsafe { asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    COUNT.load(Ordering::Relaxed)
}

/// As the kernel writes it: nothing is made ready before the question is answered.
macro_rules! point {
    ($category:expr, $a:expr) => {
        if CONTROL.is_on(1 << $category) {
            slow($category, $a);
        }
    };
}

#[cold]
#[inline(never)]
fn slow(category: u16, a: u64) {
    BUFFER.record(CONTROL.session(), &Record { category, a, ..Record::default() });
}

/// Eight times the same, without a loop that would be counted too.
macro_rules! eight_times {
    ($body:block) => {
        $body $body $body $body $body $body $body $body
    };
}

#[inline(never)]
extern "C" fn without(a: u64) -> u64 {
    a
}

#[inline(never)]
extern "C" fn with(a: u64) -> u64 {
    eight_times!({
        point!(3, a);
    });
    a
}

#[test]
fn a_point_that_is_off_costs_three_instructions_at_most() {
    let (plain, traced) = (instructions(without), instructions(with));
    let points = traced - plain;
    println!("{plain} instructions without points, {traced} with eight");
    assert!(plain >= 2, "the count works: {plain}");
    assert!(points >= 8 * 2, "the points are there: {points}");
    // A function that calls may save registers for it, which is no point's.
    assert!(points <= 8 * 3 + 4, "{points} instructions for eight points");
    // The same points record when it is on.
    let session = CONTROL.start(1 << 3);
    with(7);
    CONTROL.stop();
    let mut records = [Record::default(); 16];
    assert_eq!(BUFFER.read(session, 0, &mut records).copied, 8);
}
