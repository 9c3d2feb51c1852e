//! Where the kernel puts things in a process, and the state a thread starts in.
//!
//! At entry: RDI the argument, RSI the thread number, RDX the process number, RCX the ring
//! block's address, R8 the CapSet's address or 0, RSP the stack's top (16-byte aligned); all
//! other registers and RFLAGS' status bits are zero, x87 and SSE are in their initial state.
//!
//! What every process has lies in two mebibytes, so that one page table leads to all of it.
//!
//! Decided in ADRs 54 and 320.

/// First address past user memory.
pub const USER_END: u64 = 0x0000_7fff_ffff_f000;
/// The ring block of a process's initial thread, and the start of the ring arena.
pub const RING_VADDR: u64 = CAPSET_VADDR + 0x10_0000;
/// What the largest ring block takes of the arena; where each lies is for
/// [`RingBlock::address`](crate::RingBlock::address) to say.
pub const RING_ROOM: u64 = 1 << 20;
/// The read-only page that names the bootstrap capabilities.
pub const CAPSET_VADDR: u64 = 0x0000_7f00_0000_0000;
/// Top of the stack of a process's initial thread; the page below the stack is never mapped.
pub const STACK_TOP: u64 = CAPSET_VADDR + 0x8_0000;
/// Pages of that stack.
pub const STACK_PAGES: u64 = 64;
/// The thread-local data of a process's initial thread.
pub const TLS_VADDR: u64 = 0x0000_7f02_0000_0000;
/// The read-only page that turns a counter into nanoseconds.
pub const TIME_VADDR: u64 = CAPSET_VADDR + 0x1_0000;
/// The read-only page with a counter of 64 bits at [`COUNTER_OFFSET`], the HPET's registers; mapped where
/// the time page asks for it.
pub const COUNTER_VADDR: u64 = TIME_VADDR - 0x1000;
/// Where in that page the counter is, lower half first; a 64-bit read may be split in two.
pub const COUNTER_OFFSET: u64 = 0xf0;
