//! The real block: every position lands inside, and nothing outside is touched.
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use abi_sync::BlockMemory;
use abi_types::{RingBlock, RingWord};

const GUARD_LINES: usize = 64;

/// A cache line, for the alignment a page-backed block has.
#[derive(Clone, PartialEq, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

const CANARY: Line = Line([0xa5; 64]);

/// A block between two guards; the guards are compared when `f` is done.
fn guarded(entries: u32, f: impl FnOnce(BlockMemory)) {
    let block = RingBlock::new(entries).unwrap();
    let lines = block.size().div_ceil(64);
    assert_eq!(block.size() % 64, 0, "the guard begins right after the block");
    let mut memory = vec![CANARY; lines + 2 * GUARD_LINES];
    memory[GUARD_LINES..GUARD_LINES + lines].fill(Line([0; 64]));
    let base = NonNull::new(memory[GUARD_LINES..].as_mut_ptr().cast::<u8>()).unwrap();
    // SAFETY: aligned by Line, `lines` long, and touched only through the block until `f` ends.
    f(unsafe { BlockMemory::new(base, block) });
    assert!(memory[..GUARD_LINES].iter().all(|line| *line == CANARY));
    assert!(memory[GUARD_LINES + lines..].iter().all(|line| *line == CANARY));
}

#[test]
fn every_index_stays_in_the_block() {
    for entries in [1, 2, 64, 1024] {
        guarded(entries, |memory| {
            let spread = [0, 1, entries - 1, entries, 2 * entries, 0x8000_0000, u32::MAX];
            for index in spread.into_iter().chain(0..4 * entries) {
                memory.sqe(index).iter().for_each(|w| w.store(!0, Relaxed));
                memory.cqe(index).iter().for_each(|w| w.store(!0, Relaxed));
                memory.sqe_inline(index).iter().for_each(|w| w.store(!0, Relaxed));
                memory.cqe_inline(index).iter().for_each(|w| w.store(!0, Relaxed));
            }
        });
    }
}

#[test]
fn entries_lie_where_the_layout_says() {
    guarded(4, |memory| {
        let base = std::ptr::from_ref(memory.word(RingWord::SqTail)).addr();
        for index in (0..20).chain([u32::MAX - 1, u32::MAX]) {
            let block = memory.block();
            let offset = |place: usize| place - base;
            assert_eq!(offset(memory.sqe(index).as_ptr().addr()), block.sqe(index));
            assert_eq!(offset(memory.cqe(index).as_ptr().addr()), block.cqe(index));
            let inline = memory.sqe_inline(index).as_ptr().addr();
            assert_eq!(offset(inline), block.sqe_inline(index));
            let inline = memory.cqe_inline(index).as_ptr().addr();
            assert_eq!(offset(inline), block.cqe_inline(index));
        }
    });
}

#[test]
fn parts_do_not_overlap() {
    guarded(4, |memory| {
        for index in 0..8 {
            memory.cqe(index).iter().for_each(|w| w.store(2, Relaxed));
            memory.cqe_inline(index).iter().for_each(|w| w.store(4, Relaxed));
        }
        for index in 0..4 {
            memory.sqe(index).iter().for_each(|w| w.store(1, Relaxed));
            memory.sqe_inline(index).iter().for_each(|w| w.store(3, Relaxed));
        }
        for word in [RingWord::SqTail, RingWord::CqHead, RingWord::SqHead, RingWord::CqTail] {
            memory.word(word).store(5, Relaxed);
        }
        for index in 0..8 {
            assert!(memory.cqe(index).iter().all(|w| w.load(Relaxed) == 2));
            assert!(memory.cqe_inline(index).iter().all(|w| w.load(Relaxed) == 4));
            assert!(memory.sqe(index).iter().all(|w| w.load(Relaxed) == 1));
            assert!(memory.sqe_inline(index).iter().all(|w| w.load(Relaxed) == 3));
        }
        assert_eq!(memory.word(RingWord::Flags).load(Relaxed), 0);
    });
}

#[test]
fn attaches_to_the_geometry_it_finds() {
    #[repr(align(64))]
    struct Header([u32; 64]);
    for (entries, expected) in [(64, Some(64)), (0, None), (3, None), (4096, None)] {
        let mut header = Header([0; 64]);
        header.0[RingWord::SqEntries.offset() / 4] = entries;
        let base = NonNull::from(&mut header).cast::<u8>();
        // SAFETY: only the geometry is asked for, which lies in the header.
        let found = unsafe { BlockMemory::attach(base) };
        assert_eq!(found.map(|memory| memory.block().sq_entries()), expected);
    }
}

#[test]
fn shared_words_are_taken_if_they_are_long_enough() {
    #[repr(align(64))]
    struct Words([AtomicU64; 96]);
    static WORDS: Words = Words([const { AtomicU64::new(0) }; 96]);
    let block = RingBlock::new(1).unwrap();
    assert_eq!(block.size(), 96 * 8);
    assert!(BlockMemory::over(&WORDS.0, block).is_some());
    assert!(BlockMemory::over(&WORDS.0[..95], block).is_none());
    assert!(BlockMemory::over(&WORDS.0, RingBlock::new(2).unwrap()).is_none());
    assert!(BlockMemory::over(&WORDS.0[1..], block).is_none());
}
