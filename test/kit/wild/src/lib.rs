//! What a program should not do, for tests of a kernel that must not mind.
//!
//! Raw syscalls, memory by number, faults on purpose. Everything here is atomic or volatile: what
//! the compiler believes about the rest of the program stays true. A program that uses it on memory
//! that is not its to change is on its own, which is the point.
#![no_std]

use core::arch::asm;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Any syscall with any arguments.
pub fn syscall(number: u64, first: u64, second: u64) -> u64 {
    let result: u64;
    // SAFETY: RCX and R11 are lost, RAX holds the result, all else is kept; memory counts as
    // changed. `exit` does not come back, which no code here relies on.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// The words at an address: what the ring's own type does not let a program see or write.
pub mod at {
    use super::{AtomicU8, AtomicU32, AtomicU64, Ordering};

    fn place<T>(address: u64) -> *mut T {
        core::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Reads a byte.
    pub fn read8(address: u64) -> u8 {
        // SAFETY: an unmapped address ends this process, as the caller means it to; a mapped one is
        // read atomically.
        unsafe { AtomicU8::from_ptr(place(address)) }.load(Ordering::Relaxed)
    }

    /// Reads a 32-bit word, aligned.
    pub fn read32(address: u64) -> u32 {
        // SAFETY: as in `read8`.
        unsafe { AtomicU32::from_ptr(place(address)) }.load(Ordering::Acquire)
    }

    /// Reads a 64-bit word, aligned.
    pub fn read64(address: u64) -> u64 {
        // SAFETY: as in `read8`.
        unsafe { AtomicU64::from_ptr(place(address)) }.load(Ordering::Acquire)
    }

    /// Writes a byte.
    pub fn write8(address: u64, value: u8) {
        // SAFETY: as in `read8`; the memory is the kernel's to interpret, not the compiler's.
        unsafe { AtomicU8::from_ptr(place(address)) }.store(value, Ordering::Relaxed);
    }

    /// Writes a 32-bit word, aligned.
    pub fn write32(address: u64, value: u32) {
        // SAFETY: as in `write8`.
        unsafe { AtomicU32::from_ptr(place(address)) }.store(value, Ordering::Release);
    }

    /// Writes a 64-bit word, aligned.
    pub fn write64(address: u64, value: u64) {
        // SAFETY: as in `write8`.
        unsafe { AtomicU64::from_ptr(place(address)) }.store(value, Ordering::Release);
    }
}

/// Calls code at an address, which returns a number and changes nothing else.
pub fn call(address: u64) -> u64 {
    let result: u64;
    // SAFETY: what is there returns, as the caller means it to, or ends this process; all that a function may
    // change counts as changed.
    unsafe {
        asm!("call {code}", code = in(reg) address, lateout("rax") result, clobber_abi("C"));
    }
    result
}

/// Ends the process by a fault that no program survives.
pub fn fault() -> ! {
    // SAFETY: an invalid instruction ends the process.
    unsafe { asm!("ud2", options(noreturn, nostack)) }
}
