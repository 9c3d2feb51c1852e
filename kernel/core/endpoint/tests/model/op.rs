//! What can happen to a service.

use test_property::prelude::*;

#[derive(Clone, Debug)]
pub enum Op {
    Open(u32, u32),
    Close(usize),
    Call { at: usize, badge: u64, deadline: Option<u64> },
    Recv { at: usize, thread: u8 },
    Reply(usize),
    ReplyThenRecv { token: usize, at: usize, thread: u8 },
    CancelCall(usize),
    CancelRecv(usize),
    GiveUpDelivery(usize),
    Expire(usize),
    Lend(usize),
    RejectCall(usize),
    RejectRecv(usize),
    ThreadExit(u8),
    Pass(u64),
}

pub fn op() -> impl Strategy<Value = Op> {
    let some = any::<usize>;
    let thread = || 0..3_u8;
    prop_oneof![
        1 => (0..4_u32, 0..4_u32).prop_map(|(q, f)| Op::Open(q, f)),
        1 => some().prop_map(Op::Close),
        8 => (some(), any::<u64>(), prop::option::of(0..20_u64))
            .prop_map(|(at, badge, deadline)| Op::Call { at, badge, deadline }),
        8 => (some(), thread()).prop_map(|(at, thread)| Op::Recv { at, thread }),
        4 => some().prop_map(Op::Reply),
        4 => (some(), some(), thread())
            .prop_map(|(token, at, thread)| Op::ReplyThenRecv { token, at, thread }),
        2 => some().prop_map(Op::CancelCall),
        2 => some().prop_map(Op::CancelRecv),
        2 => some().prop_map(Op::GiveUpDelivery),
        2 => some().prop_map(Op::Expire),
        2 => some().prop_map(Op::Lend),
        2 => some().prop_map(Op::RejectCall),
        1 => some().prop_map(Op::RejectRecv),
        1 => thread().prop_map(Op::ThreadExit),
        2 => (0..10_u64).prop_map(Op::Pass),
    ]
}
