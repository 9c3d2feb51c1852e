//! How large an image may be, and where it may lie.

use abi_types::place::CAPSET_VADDR;
use core_address::PAGE_SIZE;

/// Program headers in a file, of any type.
pub const HEADERS: usize = 64;
/// Segments that are loaded. A linker makes four; the rest is for hand-written scripts.
pub const SEGMENTS: usize = 16;
/// Bytes all loaded segments take in memory, in whole pages.
pub const IMAGE_BYTES: u64 = 1 << 30;
/// Bytes of thread-local data, zero fill included: every thread has its own.
pub const TLS_BYTES: u64 = 1 << 20;
/// Alignment of thread-local data: a block begins on a page.
pub const TLS_ALIGN: u64 = PAGE_SIZE;

/// Notes in a file, of any name.
pub const NOTES: usize = 64;
/// Declarations of guards. One is for any number of stacks of one size, so a program has a few.
pub const GUARDS: usize = 16;

/// First address an image may use: below it a null pointer with an offset stays a fault.
pub const FIRST_VADDR: u64 = 0x1_0000;
/// First address past what an image may use: from here on the kernel places what it maps into
/// every process (CapSet, time page, ring arena).
pub const END_VADDR: u64 = CAPSET_VADDR;
