//! Decoding: what each operation takes, and that it takes nothing else.
use abi_ring::*;
use abi_types::limits::MAX_TRANSFERS;
use abi_types::{CapSlot, ExceptionKind, Opcode, ReplyToken, Sqe, SqeFlags, Status};
use test_property::prelude::*;
use zerocopy::transmute;

const BOUNDS: Bounds = Bounds { slots: 64, params_bytes: 4096, result_bytes: 2048 };

fn decode(sqe: Sqe) -> Result<Request, Status> {
    abi_ring::decode(transmute!(sqe), &BOUNDS)
}

fn sqe(opcode: Opcode) -> Sqe {
    Sqe { opcode: opcode as u8, user_data: !0, ..Sqe::default() }
}

/// A value for each field an operation may not use, set one at a time.
fn with_one_field(base: Sqe) -> Vec<(&'static str, Sqe)> {
    vec![
        ("unknown flag", Sqe { flags: base.flags | 1 << 6, ..base }),
        ("unknown high flag", Sqe { flags: base.flags | 1 << 7, ..base }),
        ("then_recv", Sqe { flags: base.flags | SqeFlags::THEN_RECV, ..base }),
        ("exception", Sqe { flags: base.flags | SqeFlags::EXCEPTION, ..base }),
        ("by_address", Sqe { flags: base.flags | SqeFlags::BY_ADDRESS, ..base }),
        ("registered", Sqe { flags: base.flags | SqeFlags::REGISTERED, ..base }),
        ("result by_address", Sqe { flags: base.flags | SqeFlags::RESULT_BY_ADDRESS, ..base }),
        ("result registered", Sqe { flags: base.flags | SqeFlags::RESULT_REGISTERED, ..base }),
        ("method", Sqe { method: 0x100, ..base }),
        ("length", Sqe { length: 1, ..base }),
        ("cap", Sqe { cap: 1 << 63, ..base }),
        ("arg", Sqe { arg: 1 << 63, ..base }),
        ("address", Sqe { address: 1, ..base }),
        ("high address", Sqe { address: 1 << 32, ..base }),
        ("result_address", Sqe { result_address: 1 << 63, ..base }),
        ("result_capacity", Sqe { result_capacity: 1 << 31, ..base }),
        ("transfers", Sqe { transfers: 1, ..base }),
        ("buffer", Sqe { buffer: 1, ..base }),
        ("result_buffer", Sqe { result_buffer: 1 << 15, ..base }),
        ("result_transfers", Sqe { result_transfers: 8, ..base }),
        ("too many result_transfers", Sqe { result_transfers: 9, ..base }),
        ("high result_transfers", Sqe { result_transfers: 1 << 15, ..base }),
        ("interface", Sqe { interface: 1, ..base }),
        ("high interface", Sqe { interface: 1 << 31, ..base }),
    ]
}

#[test]
fn a_field_an_operation_does_not_use_must_be_zero() {
    let uses: [(Opcode, &[&str]); 9] = [
        (Opcode::Nop, &[]),
        (
            Opcode::Call,
            &[
                "by_address",
                "registered",
                "result by_address",
                "result registered",
                "method",
                "length",
                "cap",
                "arg",
                "transfers",
                "buffer",
                "result_transfers",
                "interface",
                "high interface",
            ],
        ),
        (Opcode::Recv, &["result by_address", "result registered", "cap", "result_transfers"]),
        (
            Opcode::Return,
            &[
                "then_recv",
                "exception",
                "by_address",
                "registered",
                "length",
                "arg",
                "transfers",
                "buffer",
            ],
        ),
        (Opcode::Release, &["cap"]),
        (Opcode::Cancel, &["arg"]),
        (Opcode::Park, &["cap", "arg", "address", "result_address"]),
        (Opcode::Unpark, &["cap", "arg", "address"]),
        (Opcode::Yield, &[]),
    ];
    for (opcode, used) in uses {
        assert!(decode(sqe(opcode)).is_ok(), "{opcode:?}");
        for (field, sqe) in with_one_field(sqe(opcode)) {
            let got = decode(sqe);
            if used.contains(&field) {
                assert!(got.is_ok(), "{opcode:?} takes {field}, and yet {got:?}");
            } else {
                assert_eq!(got, Err(Status::InvalidArgument), "{opcode:?} with {field}");
            }
        }
    }
}

#[test]
fn other_opcodes_are_unsupported() {
    for number in 0..=u8::MAX {
        let got = decode(Sqe { opcode: number, ..Sqe::default() });
        let known =
            number <= Opcode::Yield as u8 || cfg!(measure) && number == Opcode::ParkBench as u8;
        assert_eq!(got == Err(Status::UnsupportedOpcode), !known, "{number}");
    }
}

fn call(sqe: Sqe) -> Call {
    match decode(sqe) {
        Ok(Request::Call(call)) => call,
        other => panic!("{other:?}"),
    }
}

fn answer(sqe: Sqe) -> Return {
    match decode(sqe) {
        Ok(Request::Return(answer)) => answer,
        other => panic!("{other:?}"),
    }
}

#[test]
fn simple_operations_carry_their_fields() {
    assert_eq!(decode(sqe(Opcode::Nop)), Ok(Request::Nop));
    assert_eq!(decode(sqe(Opcode::Yield)), Ok(Request::Yield));
    let slot = CapSlot::new(5, 6);
    let release = Sqe { cap: slot.to_bits(), ..sqe(Opcode::Release) };
    assert_eq!(decode(release), Ok(Request::Release(slot)));
    let cancel = Sqe { arg: 77, ..sqe(Opcode::Cancel) };
    assert_eq!(decode(cancel), Ok(Request::Cancel { target: 77 }));
    let words = Sqe { cap: slot.to_bits(), arg: 0x1000, address: 9, ..sqe(Opcode::Park) };
    let Ok(Request::Park(park)) = decode(Sqe { result_address: 50, ..words }) else { panic!() };
    let fields = (park.space(), park.word_address(), park.expected(), park.timeout_ns());
    assert_eq!(fields, (slot, 0x1000, 9, 50));
    let words = Sqe { opcode: Opcode::Unpark as u8, ..words };
    let Ok(Request::Unpark(unpark)) = decode(words) else { panic!() };
    assert_eq!((unpark.space(), unpark.word_address(), unpark.count()), (slot, 0x1000, 9));
}

#[test]
fn a_call_names_its_parameters_and_its_room() {
    let base = Sqe { cap: 3, method: 4, arg: 5, length: 100, buffer: 63, ..sqe(Opcode::Call) };
    let inline = call(base);
    assert_eq!(inline.target(), CapSlot::from_bits(3));
    assert_eq!((inline.method(), inline.deadline_ns(), inline.transfers()), (4, 5, 0));
    assert_eq!(inline.params(), Payload::Inline { slot: 63, length: 100 });
    assert_eq!(inline.results(), Room::Inline);
    let results = call(Sqe {
        flags: SqeFlags::RESULT_BY_ADDRESS,
        result_address: 0x2000,
        result_capacity: 1 << 20,
        ..base
    });
    assert_eq!(results.params(), inline.params());
    assert_eq!(results.results(), Room::Address { address: 0x2000, capacity: 1 << 20 });
    let registered = call(Sqe {
        flags: SqeFlags::REGISTERED | SqeFlags::RESULT_REGISTERED,
        address: 16,
        length: 4096,
        buffer: 500,
        result_address: 32,
        result_capacity: 64,
        result_buffer: 501,
        ..base
    });
    let params = Payload::Registered { buffer: 500, offset: 16, length: 4096 };
    assert_eq!(registered.params(), params);
    assert_eq!(registered.results(), Room::Registered { buffer: 501, offset: 32, capacity: 64 });
    let by_address =
        Sqe { flags: SqeFlags::BY_ADDRESS, address: 0x3000, buffer: 0, length: 4096, ..base };
    let params = Payload::Address { address: 0x3000, length: 4096 };
    assert_eq!(call(by_address).params(), params);
    for both in [
        SqeFlags::BY_ADDRESS | SqeFlags::REGISTERED,
        SqeFlags::RESULT_BY_ADDRESS | SqeFlags::RESULT_REGISTERED,
    ] {
        assert_eq!(decode(Sqe { flags: both, buffer: 0, ..base }), Err(Status::InvalidArgument));
    }
}

#[test]
fn what_goes_out_fits_its_place_and_the_limit() {
    let inline =
        |length, transfers, arg| decode(Sqe { length, transfers, arg, ..sqe(Opcode::Call) }).err();
    let too_large = Some(Status::ParamsTooLarge);
    assert_eq!(inline(128, 0, 0), None);
    assert_eq!(inline(129, 0, 0), too_large);
    assert_eq!(inline(u32::MAX, 0, 0), too_large);
    assert_eq!(inline(120, 0, 1), None, "a deadline takes the last word");
    assert_eq!(inline(121, 0, 1), too_large);
    assert_eq!(inline(112, 1, 0), None, "a capability takes two");
    assert_eq!(inline(113, 1, 0), too_large);
    assert_eq!(inline(0, MAX_TRANSFERS, 0), None);
    assert_eq!(inline(0, MAX_TRANSFERS + 1, 0), Some(Status::InvalidArgument));
    let slot = |buffer| decode(Sqe { buffer, ..sqe(Opcode::Call) }).err();
    assert_eq!((slot(63), slot(64)), (None, Some(Status::InvalidArgument)));
    for flags in [SqeFlags::BY_ADDRESS, SqeFlags::REGISTERED] {
        let length = |opcode, length| decode(Sqe { flags, length, ..sqe(opcode) }).err();
        assert_eq!(length(Opcode::Call, 4096), None);
        assert_eq!(length(Opcode::Call, 4097), too_large);
        assert_eq!(length(Opcode::Return, 2048), None);
        assert_eq!(length(Opcode::Return, 2049), Some(Status::ResultTooLarge));
    }
}

#[test]
fn a_return_may_receive_next_and_may_be_an_exception() {
    let base = Sqe { arg: 9, length: 8, transfers: 2, ..sqe(Opcode::Return) };
    let plain = answer(base);
    assert_eq!((plain.token(), plain.transfers()), (ReplyToken::from_bits(9), 2));
    assert_eq!(plain.results(), Payload::Inline { slot: 0, length: 8 });
    assert_eq!((plain.exception(), plain.then()), (None, None));
    let then = Sqe {
        flags: SqeFlags::THEN_RECV | SqeFlags::RESULT_BY_ADDRESS,
        cap: 4,
        result_address: 0x4000,
        result_capacity: 512,
        ..base
    };
    let recv = answer(then).then().unwrap();
    assert_eq!(recv.endpoint(), CapSlot::from_bits(4));
    assert_eq!(recv.room(), Room::Address { address: 0x4000, capacity: 512 });
    let exception = Sqe { flags: SqeFlags::EXCEPTION, method: 2, transfers: 0, ..base };
    assert_eq!(answer(exception).exception(), Some(ExceptionKind::Disconnected));
    for bad in [Sqe { method: 5, ..exception }, Sqe { transfers: 1, ..exception }] {
        assert_eq!(decode(bad), Err(Status::InvalidArgument));
    }
}

proptest! {

    /// Whatever decodes has every bit accounted for: written back, it is the SQE it came from.
    #[test]
    fn a_request_is_the_whole_sqe(
        opcode in 0_u8..10,
        rest in prop::collection::vec(prop_oneof![4 => Just(0_u64), 1 => 0..200_u64, 1 => any::<u64>()], 7),
        flags in 0_u8..64,
        method in 0_u16..6,
    ) {
        let mut words = [0_u64; 8];
        words[0] = u64::from(opcode) | u64::from(flags) << 8 | u64::from(method) << 16
            | (rest[0] & 0xfff) << 32;
        words[1] = 42;
        words[2..].copy_from_slice(&rest[1..]);
        if let Ok(request) = abi_ring::decode(words, &BOUNDS) {
            let again: [u64; 8] = transmute!(encode(request));
            prop_assert_eq!(again, words);
        }
    }
}

/// The SQE of a request: the obvious inverse.
fn encode(request: Request) -> Sqe {
    let base = |opcode| Sqe { user_data: 42, ..Sqe { opcode: opcode as u8, ..Sqe::default() } };
    match request {
        Request::Nop => base(Opcode::Nop),
        Request::Yield => base(Opcode::Yield),
        Request::Release(slot) => Sqe { cap: slot.to_bits(), ..base(Opcode::Release) },
        Request::Cancel { target } => Sqe { arg: target, ..base(Opcode::Cancel) },
        Request::Park(park) => Sqe {
            cap: park.space().to_bits(),
            arg: park.word_address(),
            address: park.expected().into(),
            result_address: park.timeout_ns(),
            ..base(Opcode::Park)
        },
        Request::Unpark(unpark) => Sqe {
            cap: unpark.space().to_bits(),
            arg: unpark.word_address(),
            address: unpark.count().into(),
            ..base(Opcode::Unpark)
        },
        Request::Recv(recv) => {
            let (cap, result_transfers) = (recv.endpoint().to_bits(), recv.accepts());
            with_room(Sqe { cap, result_transfers, ..base(Opcode::Recv) }, recv.room())
        }
        Request::Call(call) => {
            let sqe = Sqe {
                cap: call.target().to_bits(),
                method: call.method(),
                interface: call.interface(),
                result_transfers: call.accepts(),
                arg: call.deadline_ns(),
                transfers: call.transfers(),
                ..base(Opcode::Call)
            };
            with_room(with_payload(sqe, call.params()), call.results())
        }
        Request::Return(answer) => {
            let mut sqe = Sqe {
                arg: answer.token().to_bits(),
                transfers: answer.transfers(),
                ..base(Opcode::Return)
            };
            if let Some(kind) = answer.exception() {
                sqe = Sqe { flags: SqeFlags::EXCEPTION, method: kind as u16, ..sqe };
            }
            if let Some(recv) = answer.then() {
                let flags = sqe.flags | SqeFlags::THEN_RECV;
                let (cap, result_transfers) = (recv.endpoint().to_bits(), recv.accepts());
                sqe = with_room(Sqe { flags, cap, result_transfers, ..sqe }, recv.room());
            }
            with_payload(sqe, answer.results())
        }
        #[cfg(measure)]
        Request::ParkBench => base(Opcode::ParkBench),
    }
}

fn with_payload(sqe: Sqe, payload: Payload) -> Sqe {
    match payload {
        Payload::Inline { slot, length } => Sqe { buffer: slot, length, ..sqe },
        Payload::Address { address, length } => {
            Sqe { flags: sqe.flags | SqeFlags::BY_ADDRESS, address, length, ..sqe }
        }
        Payload::Registered { buffer, offset, length } => {
            let flags = sqe.flags | SqeFlags::REGISTERED;
            Sqe { flags, buffer, address: offset, length, ..sqe }
        }
    }
}

fn with_room(sqe: Sqe, room: Room) -> Sqe {
    match room {
        Room::Inline => sqe,
        Room::Address { address, capacity } => Sqe {
            flags: sqe.flags | SqeFlags::RESULT_BY_ADDRESS,
            result_address: address,
            result_capacity: capacity,
            ..sqe
        },
        Room::Registered { buffer, offset, capacity } => Sqe {
            flags: sqe.flags | SqeFlags::RESULT_REGISTERED,
            result_buffer: buffer,
            result_address: offset,
            result_capacity: capacity,
            ..sqe
        },
    }
}
