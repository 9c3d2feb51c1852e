//! A program for every bare platform; platforms_test.sh looks at what the compiler made of it.
#![no_std]
#![no_main]
#![feature(vec_push_within_capacity)]
#![cfg_attr(not(target_os = "uefi"), feature(thread_local))]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicU64, Ordering};

struct NoMemory;

// SAFETY: never hands out memory.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

// UEFI programs have no threads and no place for thread-local data.
#[cfg_attr(not(target_os = "uefi"), thread_local)]
static CALLS: AtomicU64 = AtomicU64::new(41);

/// Counts, computes in floating point, and asks for memory.
#[unsafe(no_mangle)]
pub extern "C" fn start(x: u64) -> u64 {
    let calls = CALLS.fetch_add(x, Ordering::Relaxed);
    let mut bytes = alloc::vec::Vec::new();
    let refused =
        bytes.try_reserve(x as usize).is_err() && bytes.push_within_capacity(0u8).is_err();
    let half = f64::from_bits(x) * 0.5;
    half.to_bits() ^ calls ^ u64::from(refused)
}
