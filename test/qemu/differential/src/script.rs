//! A seeded sequence of operations whose completions do not depend on time: each step waits for
//! what it started, so there is one order of events, whatever path the kernel takes.
//!
//! Every completion goes into a running hash; the hash at some steps is recorded, and how often
//! each status came. Two boots, with and without the fast path, must record the same.
#![no_std]
#![no_main]

use abi_types::{CapSlot, ExceptionKind, NEVER, Sqe, Status};
use capos_rt::Env;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc_protocol::{START, Work};
use test_kit::{Outcome, Suite, T, Test};
use test_ring::{Got, Random, Raw, raw, sqe};

capos_rt::main!(main);

const STEPS: u64 = 4000;
const CHECKPOINTS: usize = 8;
const SEED: u64 = 0xd1ff;

static OUT: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
static BACK: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

const SUITE: Suite<&'static Env> = Suite::new(&[Test::new("differential.script", script)]);

fn main(env: &'static Env) {
    let mut shared = env;
    test_user::run_with(env, &SUITE, &mut shared)
}

/// Everything that happened so far.
struct History {
    hash: u64,
    statuses: [u64; 18],
}

impl History {
    fn word(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }

    /// A completion, but for its token, which is the kernel's to choose.
    fn add(&mut self, got: &Got) {
        let cqe = got.cqe;
        self.word(cqe.user_data);
        self.word(u64::from(cqe.status) | u64::from(cqe.flags) << 8 | u64::from(cqe.method) << 16);
        self.word(u64::from(cqe.length));
        self.word(cqe.badge);
        for word in got.words.iter().take((cqe.length as usize).min(128) / 8) {
            self.word(*word);
        }
        if let Some(count) = self.statuses.get_mut(usize::from(cqe.status)) {
            *count += 1;
        }
    }
}

struct Script<'s, 'r> {
    ring: &'s mut Raw<'r>,
    random: Random,
    history: History,
    caps: [CapSlot; 4],
}

impl Script<'_, '_> {
    /// The next completion, as the fastest client waits for it.
    fn take(&mut self) -> Got {
        let got = loop {
            if let Some(got) = self.ring.pop() {
                break got;
            }
            let _ = self.ring.enter(1, NEVER);
        };
        self.history.add(&got);
        got
    }

    /// A call to `target` of random size, place and method.
    fn any_call(&mut self, target: CapSlot, user_data: u64) -> Sqe {
        let bytes = self.random.below(17) as u32 * 8;
        let words: [u64; 16] = core::array::from_fn(|_| self.random.bits());
        let method = self.random.below(5) as u16;
        let mut call = sqe::call(target, method, 3, bytes);
        if self.random.one_in(5) {
            OUT.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
            call = sqe::from_memory(call, OUT.as_ptr().expose_provenance() as u64, bytes);
        } else {
            self.ring.put(3, &words);
        }
        if self.random.one_in(7) {
            call = sqe::to_memory(call, BACK.as_ptr().expose_provenance() as u64, 128);
        }
        call.arg = match self.random.below(12) {
            // Long past, and never to come.
            0 => 1,
            1 => 1 << 60,
            _ => 0,
        };
        sqe::named(call, user_data)
    }

    fn step(&mut self, step: u64) {
        let [own, own_facet, echo, server] = self.caps;
        match self.random.below(10) {
            // A server in another process that waits.
            0..5 => {
                let target = if self.random.one_in(2) { echo } else { server };
                let call = self.any_call(target, step);
                self.ring.push(call);
                let _ = self.ring.enter(1, NEVER);
                self.take();
            }
            // Another process calls this one again and again.
            5..8 => {
                self.ring.push(sqe::named(sqe::recv(own), step));
                let _ = self.ring.enter(1, NEVER);
                let mut call = self.take();
                for _ in 0..self.random.below(4) {
                    let token = call.cqe.token;
                    self.ring.put(5, &[step; 16]);
                    let bytes = self.random.below(17) as u32 * 8;
                    let answer = sqe::answer(token, 5, bytes);
                    self.ring.push(sqe::named(sqe::then_recv(answer, own), step));
                    let _ = self.ring.enter(1, NEVER);
                    call = self.take();
                }
                self.ring.push(sqe::named(sqe::answer(call.cqe.token, 0, 0), step + 1));
                self.take();
            }
            // This process calls itself: cancelled while it waits, or served and refused.
            _ => {
                let call = self.any_call(own_facet, step);
                self.ring.push(call);
                // The other process's next call may be in front: the receive takes what comes.
                self.ring.push(sqe::named(sqe::cancel(step), step + 2));
                self.take();
                self.take();
                let odd = self.random.below(u64::from(u32::MAX)) << 32 | 0xffff;
                self.ring.push(sqe::refuse(odd, ExceptionKind::Failed, 0, 0));
                self.take();
            }
        }
    }
}

fn script(t: &mut T<'_, &'static Env>) -> Outcome {
    let env = *t.env;
    let named = |name: &str| env.caps.named(name).unwrap_or(CapSlot::NONE);
    let mut hashes = [0; CHECKPOINTS];
    let mut statuses = [0; 18];
    raw(t, &env.io, |ring| {
        for (peer, work) in [("c0", Work::Serve), ("c1", Work::CallMany)] {
            ring.put(1, &[work as u64]);
            ring.ends(sqe::call(named(peer), START, 1, 8), Status::Ok, "start");
        }
        let caps = [named("t"), named("self"), named("echo"), named("s0")];
        let history = History { hash: 0xcbf2_9ce4_8422_2325, statuses: [0; 18] };
        let mut script = Script { ring, random: Random::new(SEED), history, caps };
        for step in 0..STEPS {
            script.step(step << 8);
            if (step + 1) % (STEPS / CHECKPOINTS as u64) == 0 {
                hashes[(step * CHECKPOINTS as u64 / STEPS) as usize] = script.history.hash;
            }
        }
        statuses = script.history.statuses;
    })?;
    const NAMES: [&str; CHECKPOINTS] = ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"];
    for (name, hash) in NAMES.into_iter().zip(hashes) {
        t.metric(name, hash, "hash");
    }
    for (name, status) in [
        ("ok", Status::Ok),
        ("cancelled", Status::Cancelled),
        ("expired", Status::DeadlineExpired),
        ("not found", Status::NotFound),
        ("too large", Status::ParamsTooLarge),
    ] {
        t.metric(name, statuses[status as usize], "completions");
    }
    Ok(())
}
