//! The other process of the manifest: it says what it is told to, and weighs what its process does.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::scheduling_policy;
use test_kit::{Outcome, T, check, check_eq, require_ok};

use crate::bench::Bench;

/// Asks for the weight in the second word; the answer is the weight in effect afterwards, or 0 if it was refused.
pub const WEIGH: u16 = 1;
/// Answers its pid and its tid.
pub const WHO: u16 = 2;

pub fn serve(env: &'static Env, endpoint: CapSlot) -> Result<(), Error> {
    let policy = env.cap("unset", scheduling_policy::INTERFACE_ID)?;
    let io = &env.io;
    let cap = endpoint.to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut cqe = io.run(recv, &[], &mut words)?;
    loop {
        if status_of(&cqe) != Status::Ok {
            return Err(status_of(&cqe).into());
        }
        let mut own = scheduling_policy::Client::new(io.caller(), policy);
        let answer = match words[0] as u16 {
            WEIGH => match own.set_weight(words[1] as u16) {
                Ok(()) => [1, 0],
                Err(_) => [0, 0],
            },
            WHO => [u64::from(env.pid.0), u64::from(env.tid.0)],
            _ => match own.snapshot() {
                Ok(now) => [u64::from(now.weight), now.runtime_ns],
                Err(_) => [0, 0],
            },
        };
        let answered = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap,
            arg: cqe.token,
            length: 16,
            ..Sqe::default()
        };
        cqe = io.run(answered, &answer, &mut words)?;
    }
}

/// A call to the guest; what it answers.
pub fn ask(t: &T<'_, Bench>, order: u16, word: u64) -> Option<[u64; 2]> {
    let program = &t.env.program;
    let guest = program.env.cap("to-guest", plain_schema::plain::INTERFACE_ID).ok()?;
    let mut words = [0; 16];
    let cqe =
        program.io().run(call(guest, PLAIN, 0, 16), &[order.into(), word], &mut words).ok()?;
    (status_of(&cqe) == Status::Ok).then_some([words[0], words[1]])
}

/// Whether the guest comes to have that weight in effect: where CPUs race it may take a call before it has waited.
pub fn weighs(t: &T<'_, Bench>, weight: u16) -> bool {
    (0..200).any(|_| {
        t.env.program.sleep(100_000);
        ask(t, 0, 0).map(|[now, _]| now) == Some(weight.into())
    })
}

/// Without a ceiling of its own a capability reaches as far as its process weighs, here 32.
pub fn inherited_ceiling(t: &mut T<'_, Bench>) -> Outcome {
    check_eq!(t, ask(t, 0, 0).map(|[weight, _]| weight), Some(32));
    for (weight, is_granted) in [(33, 0), (64, 0), (32, 1), (0, 0), (7, 1)] {
        check_eq!(t, ask(t, WEIGH, weight), Some([is_granted, 0]));
    }
    // It waited for this call, and was queued with what it asked for.
    check!(t, weighs(t, 7), "it waited for a call");
    check_eq!(t, ask(t, WEIGH, 32), Some([1, 0]));
    // The weight of another process changes nothing of this one's.
    let own = require_ok!(t, t.env.own(t.env.unset).snapshot());
    check_eq!(t, own.weight, 64);
    Ok(())
}
