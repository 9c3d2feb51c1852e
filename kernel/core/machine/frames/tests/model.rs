//! The frame allocator against a plain set of free frames, over random operations.

use core_address::{Frame, FrameRange};
use core_frames::{AddError, Frames, Order, ReleaseError};
use std::collections::BTreeSet;
use test_property::prelude::*;

const SPAN: usize = 5000;

fn range(start: u64, count: u64) -> FrameRange {
    FrameRange::new(Frame::new(start).unwrap(), Frame::new(start + count).unwrap()).unwrap()
}

#[derive(Clone, Debug)]
enum Op {
    Add(u64, u64),
    Allocate(u8),
    ReleaseHeld(usize),
    ReleaseAny(u64, u8),
    ReleaseRun(u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => (0u64..5200, 1u64..2000).prop_map(|(s, c)| Op::Add(s, c)),
        6 => (0u8..11).prop_map(|o| Op::Allocate(o.min(o / 2 + 1))),
        5 => any::<usize>().prop_map(Op::ReleaseHeld),
        2 => (0u64..5200, 0u8..11).prop_map(|(f, o)| Op::ReleaseAny(f, o)),
        2 => (0u64..5200, prop_oneof![0u64..4, 0u64..300]).prop_map(|(f, c)| Op::ReleaseRun(f, c)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn behaves_like_a_set_of_free_frames(ops in prop::collection::vec(op(), 1..200)) {
        let mut storage = vec![u64::MAX; Frames::words_needed(SPAN)];
        let mut frames = Frames::new(SPAN, &mut storage).unwrap();
        let mut managed = BTreeSet::new();
        let mut free = BTreeSet::new();
        let mut held: Vec<(u64, Order)> = Vec::new();
        for op in ops {
            let before = frames.counts();
            match op {
                Op::Add(start, count) => {
                    let expected = if start + count > SPAN as u64 {
                        Err(AddError::BeyondSpan)
                    } else if managed.range(start..start + count).next().is_some() {
                        Err(AddError::AlreadyManaged)
                    } else {
                        managed.extend(start..start + count);
                        free.extend(start..start + count);
                        Ok(())
                    };
                    prop_assert_eq!(frames.add(range(start, count)), expected);
                }
                Op::Allocate(order) => {
                    let order = Order::new(order).unwrap();
                    let size = order.frames();
                    match frames.allocate(order) {
                        Some(frame) => {
                            let at = frame.number();
                            prop_assert_eq!(at % size, 0);
                            for f in at..at + size {
                                prop_assert!(free.remove(&f), "frame {} was not free", f);
                            }
                            held.push((at, order));
                        }
                        None => {
                            let any = (0..SPAN as u64 / size).any(|b| {
                                free.range(b * size..(b + 1) * size).count() as u64 == size
                            });
                            prop_assert!(!any, "refused although a block of {} frames is free", size);
                        }
                    }
                }
                Op::ReleaseHeld(pick) if !held.is_empty() => {
                    let (at, order) = held.swap_remove(pick % held.len());
                    prop_assert_eq!(frames.release(Frame::new(at).unwrap(), order), Ok(()));
                    free.extend(at..at + order.frames());
                }
                Op::ReleaseHeld(_) | Op::ReleaseRun(..) => {}
                Op::ReleaseAny(at, order) => {
                    let order = Order::new(order).unwrap();
                    let block = at..at + order.frames();
                    let beyond = block.end > SPAN as u64;
                    let expected = if !beyond && at % order.frames() != 0 {
                        Err(ReleaseError::Misaligned)
                    } else if beyond || block.clone().any(|f| !managed.contains(&f)) {
                        Err(ReleaseError::NotManaged)
                    } else if block.clone().any(|f| free.contains(&f)) {
                        Err(ReleaseError::AlreadyFree)
                    } else {
                        // Part of a block that is held: the caller's right, seen as a release.
                        held.retain(|(h, o)| *h + o.frames() <= block.start || *h >= block.end);
                        Ok(())
                    };
                    let got = frames.release(Frame::new(at).unwrap(), order);
                    prop_assert_eq!(got, expected);
                    if got.is_ok() {
                        free.extend(block);
                    }
                }
            }
            if let Op::ReleaseRun(at, count) = op {
                let run = at..at + count;
                let expected = if run.end > SPAN as u64 || run.clone().any(|f| !managed.contains(&f)) {
                    Err(ReleaseError::NotManaged)
                } else if run.clone().any(|f| free.contains(&f)) {
                    Err(ReleaseError::AlreadyFree)
                } else {
                    held.retain(|(h, o)| *h + o.frames() <= run.start || *h >= run.end);
                    free.extend(run);
                    Ok(())
                };
                prop_assert_eq!(frames.release_run(Frame::new(at).unwrap(), count), expected);
            }
            let counts = frames.counts();
            prop_assert_eq!(counts.managed, managed.len() as u64);
            prop_assert_eq!(counts.free, free.len() as u64);
            prop_assert!(counts.managed >= before.managed);
            prop_assert_eq!(frames.check_invariants(), Ok(()));
        }
    }
}

#[test]
fn everything_comes_back_as_the_largest_blocks() {
    let mut storage = vec![0; Frames::words_needed(4096)];
    let mut frames = Frames::new(4096, &mut storage).unwrap();
    frames.add(range(0, 4096)).unwrap();
    let mut all = Vec::new();
    while let Some(frame) = frames.allocate(Order::FRAME) {
        all.push(frame);
    }
    assert_eq!(all.len(), 4096);
    assert_eq!(frames.counts().free, 0);
    for frame in all.iter().rev() {
        frames.release(*frame, Order::FRAME).unwrap();
    }
    for _ in 0..4 {
        assert!(frames.allocate(Order::MAX).is_some());
    }
    assert_eq!(frames.counts().used(), 4096);
}

#[test]
fn orders_round_up() {
    assert_eq!(Order::for_frames(0), Some(Order::FRAME));
    assert_eq!(Order::for_frames(1), Some(Order::FRAME));
    assert_eq!(Order::for_frames(3).unwrap().frames(), 4);
    assert_eq!(Order::for_frames(1024), Some(Order::MAX));
    assert_eq!(Order::for_frames(1025), None);
    assert_eq!(Order::for_frames(u64::MAX), None);
    assert_eq!(Order::HUGE.frames(), 512);
}

#[test]
fn too_little_storage_is_refused() {
    let mut storage = vec![0; Frames::words_needed(1000) - 1];
    assert!(Frames::new(1000, &mut storage).is_none());
}
