//! Operations by hand: push, enter, pop, and a note of what did not end as expected.

use abi_types::{Cqe, NEVER, Sqe, Status};
use capos_rt::Ring;

/// Pushes an SQE; a full queue is the program's mistake and shows as a wrong status.
#[inline(always)]
pub fn push(ring: &mut Ring, sqe: Sqe) {
    let _ = ring.push(sqe);
}

/// Enters until a completion is there, and takes it.
#[inline(always)]
pub fn complete(ring: &mut Ring) -> Cqe {
    loop {
        if let Some(completion) = ring.pop() {
            return completion.take();
        }
        let _ = ring.enter(1, NEVER);
    }
}

/// One operation in one entry.
#[inline(always)]
pub fn one(ring: &mut Ring, sqe: Sqe) -> Cqe {
    push(ring, sqe);
    let _ = ring.enter(1, NEVER);
    complete(ring)
}

/// How many operations ended otherwise than they should have.
#[derive(Clone, Copy, Default)]
pub struct Wrong(pub u32);

impl Wrong {
    /// Counts a completion whose status is not `expected`.
    #[inline(always)]
    pub fn unless(&mut self, cqe: &Cqe, expected: Status) {
        self.0 += u32::from(cqe.status != expected as u8);
    }
}
