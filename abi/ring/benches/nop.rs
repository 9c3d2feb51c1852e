//! What the protocol itself costs, without a kernel entry: NOPs in batches, and a message.
//!
//! Prints nanoseconds per operation; for people, not for a verdict. `rounds` as the argument.
//! The functions are kept apart so that a debugger can count their instructions.
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use abi_ring::{Accepted, CqProducer, KernelRing, Outcome, Request, UserRing, Visitor};
use abi_ring_testing::{LIMIT, real_block};
use abi_sync::BlockMemory;
use abi_types::{Sqe, Status};

type Ring = KernelRing<BlockMemory>;
type KernelSide = fn(&Ring, &mut CqProducer) -> u32;

#[inline(never)]
fn user_submit(user: &mut UserRing<BlockMemory>, batch: u32) {
    for n in 0..batch {
        let sqe = Sqe { user_data: u64::from(n), ..Sqe::default() };
        assert!(user.push(sqe).is_ok());
    }
    user.publish();
}

/// What a kernel's lock costs, and no more.
struct SpinLock(AtomicBool);

impl SpinLock {
    #[inline]
    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        while self.0.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let result = f();
        self.0.store(false, Ordering::Release);
        result
    }
}

static LOCK: SpinLock = SpinLock(AtomicBool::new(false));

fn status(request: Result<Request, Status>) -> Status {
    match request {
        Ok(Request::Nop) => Status::Ok,
        Ok(_) => Status::Unimplemented,
        Err(status) => status,
    }
}

#[inline(never)]
fn kernel_pass(ring: &Ring, cq: &mut CqProducer) -> u32 {
    let Ok(mut pass) = ring.begin(Visitor::Syscall) else { return 0 };
    while let Some(Accepted { credit, request }) = pass.next() {
        let outcome = Outcome::plain(status(request));
        let _ = LOCK.with(|| ring.post(cq, credit, &outcome));
    }
    drop(pass);
    ring.count()
}

/// As a dispatcher that keeps the lock while operations complete at once.
#[inline(never)]
fn kernel_batch(ring: &Ring, cq: &mut CqProducer) -> u32 {
    let Ok(mut pass) = ring.begin(Visitor::Syscall) else { return 0 };
    LOCK.with(|| {
        let mut batch = ring.batch(cq);
        while let Some(Accepted { credit, request }) = pass.next() {
            batch.post(credit, &Outcome::plain(status(request)));
        }
        batch.publish().count
    })
}

#[inline(never)]
fn user_take(user: &mut UserRing<BlockMemory>) -> u64 {
    let mut sum = 0;
    while let Some(completion) = user.pop() {
        sum += completion.take().user_data;
    }
    sum
}

#[inline(never)]
fn deliver(to: &Ring, cq: &mut CqProducer, from: &Ring, length: u32) {
    let Ok(mut pass) = to.begin(Visitor::Syscall) else { return };
    if let Some(head) = pass.head() {
        let credit = pass.take(&head);
        let outcome = Outcome { length, ..Outcome::plain(Status::Ok) };
        let _ = LOCK.with(|| to.post_from_slot(cq, credit, &outcome, from, 3));
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let memory = real_block(64);
    let (ring, mut cq) = KernelRing::new(memory, LIMIT, LIMIT);
    let mut user = UserRing::new(memory);
    let passes: [(&str, KernelSide); 2] = [("nop", kernel_pass), ("nop_locked_once", kernel_batch)];
    for (name, pass) in passes {
        for batch in [1, 8, 64] {
            let begin = Instant::now();
            for _ in 0..rounds {
                user_submit(&mut user, batch);
                black_box(pass(&ring, &mut cq));
                black_box(user_take(&mut user));
            }
            let ns = begin.elapsed().as_nanos() as f64;
            println!("{name}_{batch}: {:.1} ns", ns / f64::from(rounds) / f64::from(batch));
        }
    }
    let (from, _) = KernelRing::new(real_block(64), LIMIT, LIMIT);
    for length in [0, 64, 128] {
        let begin = Instant::now();
        for _ in 0..rounds {
            user_submit(&mut user, 1);
            deliver(&ring, &mut cq, &from, length);
            black_box(user_take(&mut user));
        }
        let ns = begin.elapsed().as_nanos() as f64;
        println!("message_{length}: {:.1} ns", ns / f64::from(rounds));
    }
}
