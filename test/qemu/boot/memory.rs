//! Memory: everything that is given back is there again, and running out is an answer.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint::black_box;
use kernel_mm::fallible::{try_box, try_push};
use kernel_mm::frames::{self, Order, OwnedFrames};
use kernel_mm::stack::{KernelStack, STACK_PAGES};
use kernel_mm::{OutOfMemory, heap};
use kernel_sys::Machine;
use test_kernel::Env;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require, require_eq};

kernel_sys::kernel_main!(main);

const SUITE: Suite<Env> = Suite::new(&[
    Test::new("memory.counts-add-up", counts_add_up),
    Test::new("memory.frames-come-back", frames_come_back),
    Test::new("memory.running-out-is-an-answer", running_out_is_an_answer),
    Test::new("memory.heap-keeps-contents", heap_keeps_contents),
    Test::new("memory.heap-gives-frames-back", heap_gives_frames_back),
    Test::new("memory.heap-large", heap_large),
    Test::new("memory.stack-fails-at-every-allocation", stack_fails_at_every_allocation),
    Test::new("memory.cpu-block-fails-at-every-allocation", cpu_block_fails_at_every_allocation),
]);

fn main(machine: &'static Machine) -> ! {
    test_kernel::run(machine, &SUITE)
}

fn counts_add_up(t: &mut T<'_, Env>) -> Outcome {
    let memory = t.env.memory;
    let counts = frames::counts();
    check_eq!(t, counts.managed * 4096, memory.usable + memory.reclaimed);
    check!(t, memory.reclaimed > 0, "the loader's memory was not taken back");
    check!(t, counts.used() < 4096, "{} frames in use after boot", counts.used());
    check_eq!(t, frames::check_invariants(), Ok(()));
    t.metric("boot-frames", counts.used(), "frames");
    Ok(())
}

fn frames_come_back(t: &mut T<'_, Env>) -> Outcome {
    let before = frames::counts();
    {
        let one = frames::allocate(Order::FRAME).ok();
        let huge = frames::allocate(Order::HUGE).ok();
        let (Some(one), Some(mut huge)) = (one, huge) else {
            return t.fail(format_args!("no memory for 513 frames"));
        };
        check_eq!(t, frames::counts().free, before.free - 513);
        check_eq!(t, huge.frame().number() % 512, 0);
        check!(t, one.frame() != huge.frame());
        huge.zero();
    }
    check_eq!(t, frames::counts(), before);
    check_eq!(t, frames::check_invariants(), Ok(()));
    Ok(())
}

fn running_out_is_an_answer(t: &mut T<'_, Env>) -> Outcome {
    let before = frames::counts();
    let mut held: Vec<OwnedFrames> = Vec::new();
    require!(t, held.try_reserve(before.free as usize / 1024 + 4096).is_ok());
    let with_vector = frames::counts();
    for order in (0..=10).rev().filter_map(Order::new) {
        while let Ok(block) = frames::allocate(order) {
            require!(t, held.len() < held.capacity(), "more blocks than expected");
            let _ = try_push(&mut held, block);
        }
    }
    check_eq!(t, frames::counts().free, 0);
    check_eq!(t, frames::allocate(Order::FRAME).err(), Some(OutOfMemory));
    check_eq!(t, KernelStack::new(1).err(), Some(OutOfMemory));
    // The compiler may leave out an allocation that nobody looks at.
    check!(t, black_box(try_box([0u8; 5000])).is_err(), "a box without memory");
    let mut vector: Vec<u64> = Vec::new();
    check!(t, black_box(&mut vector).try_reserve(1 << 20).is_err(), "a vector without memory");
    check_eq!(t, frames::check_invariants(), Ok(()));
    held.clear();
    check_eq!(t, frames::counts(), with_vector);
    drop(held);
    check_eq!(t, frames::counts(), before);
    check_eq!(t, frames::check_invariants(), Ok(()));
    Ok(())
}

/// Sizes that cover every class and whole frames.
const SIZES: [usize; 12] = [1, 16, 17, 48, 100, 200, 500, 900, 1300, 2000, 4096, 20_000];

fn filled(size: usize, value: u8) -> Result<Vec<u8>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(size).map_err(|_| OutOfMemory)?;
    for _ in 0..size {
        try_push(&mut vector, value)?;
    }
    Ok(vector)
}

fn heap_keeps_contents(t: &mut T<'_, Env>) -> Outcome {
    let mut live: Vec<Vec<u8>> = Vec::new();
    let mut state = 1u32;
    for step in 0..600u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let pick = (state >> 16) as usize;
        if live.len() > 64 || (pick.is_multiple_of(3) && !live.is_empty()) {
            let vector = live.swap_remove(pick % live.len());
            let value = vector[0];
            require!(t, vector.iter().all(|b| *b == value), "step {step}: contents changed");
        } else {
            let size = SIZES[pick % SIZES.len()];
            let Ok(vector) = filled(size, step as u8) else {
                return t.fail(format_args!("no memory for {size} bytes"));
            };
            require!(t, try_push(&mut live, vector).is_ok());
        }
    }
    Ok(())
}

fn heap_gives_frames_back(t: &mut T<'_, Env>) -> Outcome {
    heap::trim();
    let before = (heap::usage(), frames::counts());
    for size in SIZES {
        let mut live: Vec<Vec<u8>> = Vec::new();
        // Several pages of each class, and of the larger sizes a few.
        let count = (40_000 / size).clamp(8, 300);
        for n in 0..count {
            let Ok(vector) = filled(size, n as u8) else {
                return t.fail(format_args!("no memory for {size} bytes"));
            };
            require!(t, try_push(&mut live, vector).is_ok());
        }
        check!(t, heap::usage().bytes >= before.0.bytes + (count * size) as u64);
    }
    heap::trim();
    check_eq!(t, (heap::usage(), frames::counts()), before);
    Ok(())
}

fn heap_large(t: &mut T<'_, Env>) -> Outcome {
    let mut large: Vec<u8> = Vec::new();
    check!(t, black_box(&mut large).try_reserve_exact(3 << 20).is_ok(), "3 MiB");
    let mut aligned: Vec<Box<Aligned>> = Vec::new();
    for _ in 0..3 {
        match try_box(Aligned([0; 64])) {
            Ok(boxed) => {
                check_eq!(t, &raw const *boxed as usize % 4096, 0);
                require!(t, try_push(&mut aligned, boxed).is_ok());
            }
            Err(OutOfMemory) => return t.fail(format_args!("no memory for a page")),
        }
    }
    // Beyond the largest block: an error, not a panic.
    let mut beyond: Vec<u8> = Vec::new();
    check!(t, black_box(&mut beyond).try_reserve_exact(5 << 20).is_err(), "5 MiB in one piece");
    check!(t, black_box(&mut beyond).try_reserve_exact(1 << 46).is_err(), "64 TiB");
    Ok(())
}

#[repr(align(4096))]
struct Aligned(#[allow(dead_code, reason = "only its place matters")] [u8; 64]);

fn stack_fails_at_every_allocation(t: &mut T<'_, Env>) -> Outcome {
    heap::trim();
    let before = frames::counts();
    for successes in 0..200 {
        frames::fail_after(Some(successes));
        let stack = KernelStack::new(STACK_PAGES);
        frames::fail_after(None);
        if let Ok(stack) = stack {
            check!(t, successes >= 1, "{STACK_PAGES} pages from nothing");
            check_eq!(t, stack.top() - stack.bottom(), STACK_PAGES * 4096);
            drop(stack);
            check_eq!(t, frames::counts(), before);
            t.metric("allocations", successes, "frames");
            return Ok(());
        }
        require_eq!(t, frames::counts(), before);
    }
    t.fail(format_args!("a stack takes more than 200 allocations"))
}

fn cpu_block_fails_at_every_allocation(t: &mut T<'_, Env>) -> Outcome {
    heap::trim();
    let before = (frames::counts(), heap::usage());
    for successes in 0..400 {
        frames::fail_after(Some(successes));
        let block = kernel_mm::cpu::new_block(1000, 1000);
        frames::fail_after(None);
        if block.is_ok() {
            t.metric("allocations", successes, "frames");
            return Ok(());
        }
        require_eq!(t, (frames::counts(), heap::usage()), before);
    }
    t.fail(format_args!("a CPU's block takes more than 400 allocations"))
}
