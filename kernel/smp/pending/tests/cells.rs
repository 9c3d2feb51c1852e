//! Cells over a real ring's credits: what is put in comes out, once.

use abi_ring::{Credit, KernelRing, Payload, Room, UserRing, Visitor};
use abi_ring_testing::{LIMIT, PlainMemory};
use abi_types::Sqe;
use smp_pending::{Cell, Cells, Operation, Target};
use std::sync::atomic::AtomicU64;

/// The credit of an SQE that called itself that.
fn credit(user_data: u64) -> Credit {
    let (ring, _cq) = KernelRing::new(PlainMemory::zeroed(2), LIMIT, LIMIT);
    let mut user = UserRing::new(ring.memory());
    user.push(Sqe { user_data, ..Sqe::default() }).unwrap();
    user.publish();
    ring.begin(Visitor::Syscall).unwrap().next().unwrap().credit
}

fn cells<const N: usize, const M: usize>() -> Cells<[Cell; N], [AtomicU64; M]> {
    Cells::new(
        core::array::from_fn(|_| Cell::default()),
        core::array::from_fn(|_| AtomicU64::new(0)),
    )
}

const NOTHING: Payload = Payload::Inline { slot: 0, length: 0 };
const PLAIN: Operation = Operation::receiving(Room::Inline, 0);

#[test]
fn what_was_put_in_comes_out() {
    let payloads = [
        NOTHING,
        Payload::Inline { slot: u16::MAX, length: 128 },
        Payload::Address { address: u64::MAX - 1, length: u32::MAX },
        Payload::Registered { buffer: 7, offset: 1 << 40, length: 9 },
    ];
    let rooms = [
        Room::Inline,
        Room::Address { address: 0xdead_beef_0000, capacity: u32::MAX },
        Room::Registered { buffer: u16::MAX, offset: 3, capacity: 5 },
    ];
    let cells = cells::<1, 0>();
    let mut user_data = 0x55 << 56;
    for payload in payloads {
        for room in rooms {
            for (method, transfers, accepts) in
                [(0, 0, 0), (u16::MAX, 8, 8), (1, 8, 3), (7, 0, 8), (7, 1, 0)]
            {
                user_data += 1;
                let operation = Operation { method, transfers, accepts, payload, room };
                let (index, cell) = cells.keep(credit(user_data), &operation).unwrap();
                assert_eq!((cell.operation(), cell.user_data()), (operation, user_data));
                assert_eq!(cells.finish(index), Some(credit(user_data)));
                if let (Payload::Inline { slot, length }, Room::Inline, 0) =
                    (payload, room, transfers | accepts)
                {
                    user_data += 1;
                    let kept = cells.keep_inline(credit(user_data), method, slot, length);
                    let (index, cell) = kept.unwrap();
                    assert_eq!((cell.operation(), cell.user_data()), (operation, user_data));
                    assert_eq!(cells.finish(index), Some(credit(user_data)));
                }
            }
        }
    }
}

#[test]
fn a_cell_knows_what_it_waits_for() {
    let cells = cells::<0, 0>();
    let (_, cell) = cells.keep(credit(1), &PLAIN).unwrap();
    for target in [
        Target::Call { process: (1 << 24) - 1, generation: u32::MAX, key: u64::MAX },
        Target::Call { process: 0, generation: 1, key: 0 },
        Target::Recv { key: 5 },
        Target::Sleep,
        Target::Join { thread: 1 << 63 },
        Target::Park { ticket: u32::MAX >> 1 },
        Target::Read,
        Target::Memory,
        Target::End { process: 0x1234_5678_9abc_def0 },
    ] {
        cell.set_target(target);
        assert_eq!(cell.target(), target);
    }
}

#[test]
fn every_cell_is_taken_once_and_comes_back() {
    let cells = cells::<69, 1>();
    let keep = |of| cells.keep(credit(of), &PLAIN).map(|(index, _)| index);
    let mut seen = [false; 70];
    for of in 0..70 {
        let index = keep(of).unwrap();
        assert!(!seen[index as usize], "{index} was given out twice");
        seen[index as usize] = true;
    }
    assert_eq!(keep(70), Err(credit(70)), "the credit comes back");
    assert_eq!(cells.busy(0).count(), 70);
    for index in [3, 69, 64] {
        assert_eq!(cells.finish(index), Some(credit(u64::from(index))));
        assert_eq!(cells.finish(index), None, "{index} was finished twice");
    }
    assert_eq!(cells.busy(0).count(), 67);
    assert_eq!((keep(0), keep(0)), (Ok(3), Ok(64)));
    assert_eq!(cells.busy(64).map(|(index, _)| index).collect::<Vec<_>>(), [64, 65, 66, 67, 68]);
    assert_eq!((keep(0), keep(1)), (Ok(69), Err(credit(1))));
    assert_eq!(cells.finish(70), None, "there is none of that number");
}

/// What the reaper drops with a ring is not completed by one who comes later.
#[test]
fn an_operation_is_completed_or_goes_with_its_ring() {
    let cells = cells::<64, 1>();
    for index in [0, 64] {
        while cells.busy(0).count() <= index as usize {
            cells.keep(credit(9), &PLAIN).unwrap();
        }
        assert!(cells.drop_with_ring(index));
        assert_eq!(cells.finish(index), None);
    }
}

#[test]
fn a_whole_word_of_cells() {
    let cells = cells::<63, 0>();
    let keep = || cells.keep_inline(credit(1), 0, 0, 0);
    assert_eq!((0..64).filter(|_| keep().is_ok()).count(), 64);
    assert!(keep().is_err() && cells.count() == 64);
}
