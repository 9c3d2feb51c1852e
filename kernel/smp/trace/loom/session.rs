//! A reader meets the CPU that writes: what it gets are whole records of the session it asked for.
//!
//! The writer is the model's first thread. Loom remembers the latest access to an atomic only: a
//! writer that looks before it stores would hide a reader that looked before it.

use abi_sync::atomic::{AtomicU64, Ordering, fence};
use abi_sync::{Arc, thread};
use smp_trace::{Buffer, Control, RECORD_WORDS, Record};

fn words(records: usize) -> Vec<AtomicU64> {
    (0..records * RECORD_WORDS).map(|_| AtomicU64::new(0)).collect()
}

/// A record whose parts tell that they belong together, and to which session.
fn record(session: u64, number: u64) -> Record {
    Record { time_ns: number, a: session, b: !number, ..Record::default() }
}

fn check(seen: &[Record], session: u64) {
    for (number, one) in seen.iter().enumerate() {
        assert_eq!(one.b, !one.time_ns, "a record in pieces");
        assert_eq!(one.a, session, "a record of another session");
        assert_eq!(one.time_ns, number as u64, "out of order");
    }
}

fn whole_records(more_writers: usize) {
    abi_sync::model(move || {
        let (control, buffer) = (Control::new(), Arc::new(Buffer::new(words(2))));
        let session = control.start(1);
        let reader = buffer.clone();
        let t = thread::spawn(move || {
            let mut seen = [Record::default(); 3];
            let portion = reader.read(session, 0, &mut seen);
            check(&seen[..portion.copied], 1);
        });
        let second = (0..more_writers).map(|_| {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.record(session, &record(1, 7)))
        });
        let second: Vec<_> = second.collect();
        for number in 0..3 {
            buffer.record(session, &record(1, number));
        }
        second.into_iter().for_each(|writer| writer.join().unwrap());
        t.join().unwrap();
        let mut seen = [Record::default(); 3];
        let portion = buffer.read(session, 0, &mut seen);
        assert_eq!((portion.copied, portion.lost), (2, 1), "a record is kept or counted as lost");
        check(&seen[..2], 1);
    });
}

#[test]
fn a_reader_sees_whole_records() {
    whole_records(0);
}

/// Two CPUs write into one buffer.
#[test]
#[should_panic(expected = "a record is kept or counted as lost")]
fn a_mutant_with_two_writers_is_caught() {
    whole_records(1);
}

/// The CPU goes on in a new session while somebody reads the old one; and `late` if another CPU
/// writes here for the old one.
fn sessions(late: bool) {
    abi_sync::model(move || {
        let (control, buffer) = (Control::new(), Arc::new(Buffer::new(words(1))));
        let old = control.start(1);
        buffer.record(old, &record(1, 0));
        let new = control.start(1);
        let reader = buffer.clone();
        let t = thread::spawn(move || {
            let mut seen = [Record::default(); 1];
            let portion = reader.read(old, 0, &mut seen);
            check(&seen[..portion.copied], 1);
            let portion = reader.read(new, 0, &mut seen);
            check(&seen[..portion.copied], 2);
        });
        let second = late.then(|| {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.record(old, &record(1, 0)))
        });
        buffer.record(new, &record(2, 0));
        second.into_iter().for_each(|writer| writer.join().unwrap());
        t.join().unwrap();
    });
}

#[test]
fn a_reader_never_mixes_sessions() {
    sessions(false);
}

#[test]
#[should_panic(expected = "a record of another session")]
fn a_mutant_with_a_writer_of_the_old_session_is_caught() {
    sessions(true);
}

/// What the protocol may get wrong.
#[derive(Clone, Copy)]
struct Flaws {
    /// Counts a record before it is written.
    counts_first: bool,
    /// Publishes without order.
    publishes_relaxed: bool,
    /// The reader does not look at the session again.
    looks_once: bool,
    /// A new session begins without a fence.
    starts_without_fence: bool,
}

const NONE: Flaws = Flaws {
    counts_first: false,
    publishes_relaxed: false,
    looks_once: false,
    starts_without_fence: false,
};

/// The buffer on plain words, one record of two words, with the flaws as parameters. The upper
/// half of the state is the session, the lower the count.
fn buffer_with(flaws: Flaws, restarts: bool) {
    abi_sync::model(move || {
        let state = Arc::new(AtomicU64::new(if restarts { 1 << 32 | 1 } else { 1 << 32 }));
        let cells = Arc::new([AtomicU64::new(7), AtomicU64::new(7)]);
        let (s, c) = (state.clone(), cells.clone());
        let t = thread::spawn(move || {
            let seen = s.load(Ordering::Acquire);
            if seen & 0xffff_ffff == 1 {
                let pair = (c[0].load(Ordering::Relaxed), c[1].load(Ordering::Relaxed));
                fence(Ordering::Acquire);
                let same = flaws.looks_once || s.load(Ordering::Relaxed) >> 32 == seen >> 32;
                let expected = if restarts && seen >> 32 == 1 { 7 } else { 8 };
                assert!(!same || pair == (expected, expected), "a record in pieces: {pair:?}");
            }
        });
        let mut word = state.load(Ordering::Relaxed);
        if restarts {
            word = 2 << 32;
            state.store(word, Ordering::Relaxed);
            if !flaws.starts_without_fence {
                fence(Ordering::Release);
            }
        }
        let publish = if flaws.publishes_relaxed { Ordering::Relaxed } else { Ordering::Release };
        if flaws.counts_first {
            state.store(word + 1, publish);
        }
        cells[0].store(8, Ordering::Relaxed);
        cells[1].store(8, Ordering::Relaxed);
        state.store(word + 1, publish);
        t.join().unwrap();
    });
}

#[test]
fn the_buffer_without_flaws_holds() {
    buffer_with(NONE, false);
    buffer_with(NONE, true);
}

#[test]
#[should_panic(expected = "a record in pieces")]
fn a_mutant_that_counts_before_it_writes_is_caught() {
    buffer_with(Flaws { counts_first: true, ..NONE }, false);
}

#[test]
#[should_panic(expected = "a record in pieces")]
fn a_mutant_that_publishes_without_order_is_caught() {
    buffer_with(Flaws { publishes_relaxed: true, ..NONE }, false);
}

#[test]
#[should_panic(expected = "a record in pieces")]
fn a_mutant_reader_that_looks_once_is_caught() {
    buffer_with(Flaws { looks_once: true, ..NONE }, true);
}

#[test]
#[should_panic(expected = "a record in pieces")]
fn a_mutant_that_starts_without_fence_is_caught() {
    buffer_with(Flaws { starts_without_fence: true, ..NONE }, true);
}
