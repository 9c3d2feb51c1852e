//! The bytes of the interface, written out: a change here breaks every program built before.
use abi_types::*;
use zerocopy::IntoBytes;

#[test]
fn an_sqe_is_these_bytes() {
    let sqe = Sqe {
        opcode: Opcode::Return as u8,
        flags: SqeFlags::THEN_RECV | SqeFlags::BY_ADDRESS,
        method: 0x0203,
        length: 0x0405_0607,
        user_data: 0x1011_1213_1415_1617,
        cap: CapSlot::new(0x2021_2223, 0x2425_2627).to_bits(),
        arg: ReplyToken::new(0x3031_3233, 0x3435_3637).to_bits(),
        address: 0x4041_4243_4445_4647,
        result_address: 0x5051_5253_5455_5657,
        result_capacity: 0x6061_6263,
        transfers: 0x6465,
        buffer: 0x6667,
        result_buffer: 0x7071,
        result_transfers: 0x7273,
        interface: 0x7475_7677,
    };
    let golden = "0305030207060504171615141312111023222120272625243332313037363534\
                  4746454443424140575655545352515063626160656467667170737277767574";
    assert_eq!(hex(sqe.as_bytes()), golden);
}

#[test]
fn a_tag_is_the_two_halves_of_an_id_and_never_zero() {
    let tag = |id| InterfaceTag::of(id).map(InterfaceTag::to_bits);
    assert_eq!(tag(0xfd6f_2413_3a06_e835), Some(0xc769_cc26));
    assert_eq!((tag(1), tag(1 << 32)), (Some(1), Some(1)));
    assert_eq!((tag(0), tag(0x8000_0001_8000_0001)), (None, None));
}

#[test]
fn a_cqe_is_these_bytes() {
    let cqe = Cqe {
        user_data: 0x1011_1213_1415_1617,
        status: Status::DeadlineExpired as u8,
        flags: CqeFlags::BY_ADDRESS | 3 << CqeFlags::TRANSFERS_SHIFT,
        method: 0x0203,
        length: 0x0405_0607,
        badge: 0x2021_2223_2425_2627,
        token: ReplyToken::new(0x3031_3233, 0x3435_3637).to_bits(),
    };
    assert_eq!(
        hex(cqe.as_bytes()),
        "17161514131211100b3103020706050427262524232221203332313037363534"
    );
    assert_eq!((cqe.transfers(), cqe.status()), (3, Some(Status::DeadlineExpired)));
}

#[test]
fn a_transfer_is_these_bytes() {
    let transfer = Transfer {
        slot: CapSlot::new(0x2021_2223, 0x2425_2627).to_bits(),
        mode: TransferMode::Move as u32,
        reserved: 0,
    };
    assert_eq!(hex(transfer.as_bytes()), "23222120272625240100000000000000");
}

#[test]
fn a_thread_ref_is_these_bytes() {
    let thread =
        ThreadRef { pid: Pid(1), process_generation: 2, tid: Tid(3), thread_generation: 4 };
    assert_eq!(hex(thread.as_bytes()), "01000000020000000300000004000000");
}

#[test]
fn a_note_of_guards_is_these_bytes() {
    let guards = Guards {
        start: 0x1011_1213_1415_1617,
        stride: 0x2021_2223_2425_2627,
        count: 0x3031_3233_3435_3637,
    };
    let golden = "171615141312111027262524232221203736353433323130";
    assert_eq!(hex(guards.as_bytes()), golden);
    assert_eq!((&NOTE_NAME, NOTE_GUARDS), (b"capOS\0", 1));
}

#[test]
fn the_default_ring_is_laid_out_like_this() {
    let block = RingBlock::new(limits::DEFAULT_SQ_ENTRIES).unwrap();
    assert_eq!((block.sq_entries(), block.cq_entries()), (64, 128));
    assert_eq!((block.sqe(0), block.sqe(63), block.sqe(64)), (256, 256 + 63 * 64, 256));
    assert_eq!((block.cqe(0), block.cqe(127), block.cqe(128)), (4352, 4352 + 127 * 32, 4352));
    assert_eq!((block.sqe_inline(0), block.cqe_inline(0)), (8448, 16640));
    assert_eq!(block.size(), 33024);
    assert_eq!(
        [0, 1, 15].map(|number| block.address(number)),
        [0x7f00_0010_0000, 0x7f00_0010_a000, 0x7f00_0019_6000]
    );
}

#[test]
fn the_shared_words_lie_here() {
    let words = [
        (RingWord::SqTail, 0),
        (RingWord::CqHead, 4),
        (RingWord::SqHead, 64),
        (RingWord::CqTail, 68),
        (RingWord::Flags, 72),
        (RingWord::SqEntries, 128),
        (RingWord::CqEntries, 132),
    ];
    for (word, offset) in words {
        assert_eq!(word.offset(), offset, "{word:?}");
    }
}

#[test]
fn a_ring_size_is_a_power_of_two_in_bounds() {
    for bad in [0, 3, 63, 65, limits::MAX_SQ_ENTRIES * 2, u32::MAX] {
        assert_eq!(RingBlock::new(bad), None, "{bad}");
    }
    for shift in 0..=10 {
        assert!(RingBlock::new(1 << shift).is_some());
    }
}

#[test]
fn numbers_and_names_agree() {
    for number in 0..=u8::MAX {
        if let Some(opcode) = Opcode::from_number(number) {
            assert_eq!(opcode as u8, number);
        }
        if let Some(status) = Status::from_number(number) {
            assert_eq!(status as u8, number);
        }
    }
    for number in 0..=u16::MAX {
        if let Some(kind) = ExceptionKind::from_number(number) {
            assert_eq!(kind as u16, number);
        }
    }
    assert_eq!((0..=u16::MAX).filter(|n| ExceptionKind::from_number(*n).is_some()).count(), 5);
    assert_eq!((0..=u8::MAX).filter(|n| Opcode::from_number(*n).is_some()).count(), 11);
    assert_eq!((0..=u8::MAX).filter(|n| Status::from_number(*n).is_some()).count(), 21);
}

#[test]
fn the_time_page_counts_from_its_base_and_never_back() {
    let page = TimePage {
        base_ticks: 1000,
        base_ns: 500,
        ns_per_tick_q32: 1 << 31,
        source: TimePage::TSC,
    };
    assert_eq!(page.at(0), 500);
    assert_eq!(page.at(1000), 500);
    assert_eq!(page.at(1004), 502);
    // Decades of uptime at 5 GHz do not overflow.
    let fast = TimePage { ns_per_tick_q32: 858_993_459, ..TimePage::default() };
    let fifty_years_ticks = 50 * 365 * 86_400 * 5_000_000_000;
    assert_eq!(fast.at(fifty_years_ticks) / 1_000_000_000, 1_576_799_999);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
