//! Stacks a program declares: memory of its own image, with a guard below each.
//!
//! [`stacks!`](crate::stacks) makes them, and a note in the program's file that names their guards:
//! pages the kernel does not map, so that an overflow ends the process at once and writes nowhere.
//!
//! Decided in ADR 180.

use core::cell::UnsafeCell;
use core::ops::Range;

use abi_types::GUARD_BYTES;

/// Bytes of a guard.
const GUARD: usize = GUARD_BYTES as usize;

/// Memory for one stack, above its guard. All zeros: it takes no place in the program's file.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Stack<const BYTES: usize> {
    guard: UnsafeCell<[u8; GUARD]>,
    memory: UnsafeCell<[u8; BYTES]>,
}

// SAFETY: nothing here reaches the memory; whoever does says why it may. Nobody reaches the guard.
unsafe impl<const BYTES: usize> Sync for Stack<BYTES> {}

impl<const BYTES: usize> Stack<BYTES> {
    /// For [`stacks!`](crate::stacks) alone: without its note the guard would be memory.
    #[doc(hidden)]
    pub const fn new() -> Self {
        const {
            assert!(
                BYTES > 0 && BYTES.is_multiple_of(GUARD),
                "a stack has a multiple of 4096 bytes"
            );
        }
        Self { guard: UnsafeCell::new([0; GUARD]), memory: UnsafeCell::new([0; BYTES]) }
    }
}

/// A stack of whatever size.
#[derive(Clone, Copy, Debug)]
pub struct StackRef {
    low: *mut u8,
    bytes: usize,
}

// SAFETY: as for `Stack`: only an address.
unsafe impl Send for StackRef {}
// SAFETY: as above.
unsafe impl Sync for StackRef {}

impl StackRef {
    /// Its memory, exposed: from just above the guard to its end.
    pub fn memory(&self) -> Range<usize> {
        let low = self.low.expose_provenance();
        low..low + self.bytes
    }
}

impl<const BYTES: usize> From<&'static Stack<BYTES>> for StackRef {
    fn from(stack: &'static Stack<BYTES>) -> Self {
        Self { low: stack.memory.get().cast(), bytes: BYTES }
    }
}

/// Stacks of one size that were declared together.
#[derive(Clone, Copy, Debug)]
pub struct Stacks {
    first: *mut u8,
    bytes: usize,
    count: usize,
}

// SAFETY: as for `StackRef`.
unsafe impl Send for Stacks {}
// SAFETY: as above.
unsafe impl Sync for Stacks {}

impl Stacks {
    /// All of an array.
    pub const fn of<const BYTES: usize, const COUNT: usize>(
        stacks: &'static [Stack<BYTES>; COUNT],
    ) -> Self {
        // All of it is in cells, so it may be written through.
        let start = stacks.as_ptr().cast::<u8>().cast_mut();
        Self { first: start.wrapping_byte_add(GUARD), bytes: BYTES, count: COUNT }
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Bytes of each.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// One of them.
    pub fn get(&self, number: usize) -> Option<StackRef> {
        let low = self.first.wrapping_byte_add(number * (self.bytes + GUARD));
        (number < self.count).then_some(StackRef { low, bytes: self.bytes })
    }

    /// Which one has its guard at the address.
    pub fn number_of(&self, guard: usize) -> Option<usize> {
        let offset = (guard + GUARD).checked_sub(self.first.addr())?;
        let number = offset / (self.bytes + GUARD);
        (number < self.count).then_some(number)
    }
}

/// The parts of the note that [`stacks!`](crate::stacks) makes: see [`abi_types::Guards`].
#[doc(hidden)]
pub mod note {
    use abi_types::{Guards, NOTE_GUARDS, NOTE_NAME};
    use core::mem::offset_of;

    pub const NAME_BYTES: usize = NOTE_NAME.len();
    pub const DESCRIPTOR_BYTES: usize = size_of::<Guards>();
    pub const KIND: u32 = NOTE_GUARDS;

    // What the macro writes out.
    const _: () = {
        assert!(matches!(&NOTE_NAME, b"capOS\0"));
        assert!(offset_of!(Guards, start) == 0 && offset_of!(Guards, stride) == 8);
        assert!(offset_of!(Guards, count) == 16 && DESCRIPTOR_BYTES == 24);
    };

    pub const fn at_least_one(count: usize) -> usize {
        assert!(count > 0, "no stacks: leave the declaration out");
        count
    }
}

/// Declares stacks with guards, as many and as large as it says: `[bytes; count]`, the bytes a multiple
/// of 4096. A guard takes a page of addresses and no memory.
///
/// ```ignore
/// capos_rt::stacks! {
///     /// For those who count.
///     static COUNTERS: [32 << 10; 4];
/// }
/// ```
///
/// `COUNTERS` is an array of four [`Stack`](crate::thread::Stack)s.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! stacks {
    ($($(#[$attribute:meta])* $visibility:vis static $name:ident: [$bytes:expr; $count:expr];)+) => {$(
        $(#[$attribute])*
        $visibility static $name: [$crate::thread::Stack<{ $bytes }>; $count] =
            [const { $crate::thread::Stack::new() }; $count];
        // Not a static: one that nothing uses would be marked for the linker to keep, and that makes
        // the file one of another system (`EI_OSABI`). The linker keeps notes by themselves.
        ::core::arch::global_asm!(
            ".pushsection .note.capos, \"a\", @note",
            ".balign 8",
            ".long {name_bytes}, {descriptor_bytes}, {kind}",
            ".asciz \"capOS\"",
            ".balign 8",
            ".quad {first}, {stride}, {count}",
            ".popsection",
            name_bytes = const $crate::thread::note::NAME_BYTES,
            descriptor_bytes = const $crate::thread::note::DESCRIPTOR_BYTES,
            kind = const $crate::thread::note::KIND,
            first = sym $name,
            stride = const ::core::mem::size_of::<$crate::thread::Stack<{ $bytes }>>(),
            count = const $crate::thread::note::at_least_one($count),
        );
    )+};
}
