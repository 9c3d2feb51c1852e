//! The binary interface between capOS and its programs: every type and constant both sides share.
//!
//! Compiles unchanged in the kernel, in user programs and on the host; allocates nothing and
//! does nothing. The ring protocol that moves these values is in `abi/ring`.
//!
//! Layouts are part of the interface: each is pinned by an assertion beside its definition
//! and by the golden bytes in `tests/golden.rs`.
#![no_std]

mod capset;
mod cqe;
mod enter;
mod ids;
mod interface;
pub mod limits;
mod note;
mod opcode;
pub mod place;
mod ring_block;
mod sqe;
mod start;
mod status;
mod time;
mod transfer;

pub use capset::{CAPSET_MAGIC, CAPSET_NAME_BYTES, CapSetEntry, CapSetHeader};
pub use cqe::{Cqe, CqeFlags};
pub use enter::{EnterFlags, EnterResult, NEVER, Syscall, UNKNOWN_SYSCALL};
pub use ids::{CapSlot, Pid, ReplyToken, ThreadRef, Tid};
pub use interface::InterfaceTag;
pub use note::{ABI_NUMBER, GUARD_BYTES, Guards, NOTE_ABI, NOTE_GUARDS, NOTE_NAME};
pub use opcode::Opcode;
pub use ring_block::{
    INLINE_BYTES, RingBlock, RingConsumerLine, RingFlags, RingProducerLine, RingWord,
};
pub use sqe::{Sqe, SqeFlags};
pub use start::{
    START_BYTES, START_MAGIC, StartEntry, StartFull, StartHeader, StartReader, StartWriter,
};
pub use status::{ExceptionKind, Status};
pub use time::TimePage;
pub use transfer::{Transfer, TransferMode};
