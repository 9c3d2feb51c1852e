//! The witness's loop: one call to the healthy peer after the other, and what comes meanwhile.

use abi_types::{CapSlot, NEVER, Sqe, Status};
use capos_rt::{Env, now_ns};
use hostile_protocol::{CAREFUL, GOAL, HELLO, News, Start, VANDALS, of_badge};
use schema::system_info::MachineResults;
use test_ring::{Got, Random, Raw, sqe};

use crate::cap;

/// User data of what the witness has under way.
const ECHO: u64 = 1;
const RECV: u64 = 2;
const ANSWER: u64 = 3;
const LOOK: u64 = 4;
const CANCEL: u64 = 5;
const TELL: u64 = 6;
/// With a vandal's number: a call that ends with it; one to its other endpoint, to be sure.
const LIFE: u64 = 100;
const SURE: u64 = 200;

/// Inline slots.
const ECHO_SLOT: u16 = 3;
const START_SLOT: u16 = 4;

/// How long a reckless vandal has to end, in the guest's time.
const PATIENCE_NS: u64 = 30_000_000_000;
/// How long what is left of one has to be given back.
const SETTLE_NS: u64 = 5_000_000_000;
/// How often the same has to be seen before what one gave back is an example for the others.
const SAME_LOOKS: u32 = 100;

/// Where a vandal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Begins,
    Runs,
    /// A call to it was disconnected; another is asked.
    Ending,
    Ended,
}

/// The reckless vandal whose turn it is.
#[derive(Clone, Copy, Debug)]
struct Turn {
    vandal: usize,
    frames: u64,
    given_up_ns: u64,
}

/// What the witness knows.
pub struct Watch {
    pub env: &'static Env,
    pub seed: u64,
    pub goal: u64,
    /// Calls to the healthy peer that were answered.
    pub served: u64,
    pub news: [News; CAREFUL],
    /// Reckless vandals that did not end.
    pub left_alone: usize,
    /// Frames that each gives back but the first, which leaves spare kernel stacks behind for the others.
    pub given_back: Option<u64>,
    /// Two gave back the same. Until then what is late of one may have counted for the next.
    pub is_sure: bool,
    /// The first other amount that one gave back.
    pub unequal: Option<u64>,
    lives: [Life; VANDALS],
    hello: [Option<u64>; VANDALS],
    turn: Option<Turn>,
    next: usize,
    frames: u64,
    pending: u64,
    random: Random,
    life: [CapSlot; VANDALS],
    own: [CapSlot; VANDALS],
}

impl Watch {
    pub fn new(env: &'static Env) -> Self {
        let facets = |letters: &str| core::array::from_fn(|vandal| numbered(env, letters, vandal));
        Self {
            env,
            seed: 0,
            goal: u64::MAX,
            served: 0,
            news: [News::default(); CAREFUL],
            left_alone: 0,
            given_back: None,
            is_sure: false,
            unequal: None,
            lives: [Life::Begins; VANDALS],
            hello: [None; VANDALS],
            turn: None,
            next: CAREFUL,
            frames: 0,
            pending: 0,
            random: Random::new(4),
            life: facets("life"),
            own: facets("own"),
        }
    }

    pub fn operations(&self) -> u64 {
        self.news.iter().map(|news| news.operations).sum()
    }

    pub fn has_ended(&self, vandal: usize) -> bool {
        self.lives[vandal] == Life::Ended
    }

    fn push(&mut self, ring: &mut Raw<'_>, sqe: Sqe, user_data: u64) {
        self.pending += 1;
        ring.push(sqe::named(sqe, user_data));
    }

    /// Until the careful have done enough and the reckless have had their turns, or something is wrong.
    pub fn run(&mut self, ring: &mut Raw<'_>) {
        self.push(ring, sqe::recv(cap(self.env, "news")), RECV);
        self.push(ring, sqe::call(cap(self.env, "goal"), 0, 0, 0), TELL);
        for (vandal, facet) in (0..).zip(self.life) {
            self.push(ring, sqe::call(facet, 0, 0, 0), LIFE + vandal);
        }
        loop {
            self.call_the_peer(ring);
            self.take_turns(ring);
            let is_done = self.operations() >= self.goal
                && self.news.iter().all(|news| news.operations > 0)
                && self.next == VANDALS
                && self.turn.is_none();
            let is_dead = (0..CAREFUL).any(|vandal| self.has_ended(vandal));
            if is_done || is_dead || ring.failures() != 0 {
                break;
            }
        }
        self.withdraw(ring);
    }

    fn call_the_peer(&mut self, ring: &mut Raw<'_>) {
        let word = self.random.bits();
        ring.put(ECHO_SLOT, &[word, !word]);
        self.push(ring, sqe::call(cap(self.env, "echo"), 0, ECHO_SLOT, 16), ECHO);
        let got = self.wait_for(ring, ECHO);
        let is_right = got.status() == Some(Status::Ok) && got.words[..2] == [word, !word];
        ring.check(is_right, "an answer of the healthy peer");
        self.served += 1;
    }

    /// Waits for a completion, and deals with what comes before it.
    fn wait_for(&mut self, ring: &mut Raw<'_>, user_data: u64) -> Got {
        let _ = ring.enter(1, NEVER);
        loop {
            let got = ring.wait();
            self.pending = self.pending.saturating_sub(1);
            if got.cqe.user_data == user_data || got.cqe.status == u8::MAX {
                return got;
            }
            self.deal_with(ring, &got);
        }
    }

    fn deal_with(&mut self, ring: &mut Raw<'_>, got: &Got) {
        let status = got.status();
        match got.cqe.user_data {
            RECV if status == Some(Status::Ok) => {
                self.hear(ring, got);
                self.push(ring, sqe::recv(cap(self.env, "news")), RECV);
            }
            TELL | ANSWER => ring.eq(status, Some(Status::Ok), "an answer"),
            name @ LIFE..SURE if ((name - LIFE) as usize) < VANDALS => {
                let vandal = (name - LIFE) as usize;
                if status == Some(Status::Disconnected) {
                    self.lives[vandal] = Life::Ending;
                    self.push(ring, sqe::call(self.own[vandal], 0, 0, 0), SURE + vandal as u64);
                } else {
                    // It received the call and answered, or had no room for it: it lives.
                    self.push(ring, sqe::call(self.life[vandal], 0, 0, 0), name);
                }
            }
            name @ SURE.. if ((name - SURE) as usize) < VANDALS => {
                // Otherwise it has closed an endpoint, and lives.
                let is_gone = status == Some(Status::Disconnected);
                self.lives[(name - SURE) as usize] = if is_gone { Life::Ended } else { Life::Runs };
            }
            name => {
                ring.fail(format_args!("a completion that nobody asked for: {name} {status:?}"))
            }
        }
    }

    /// Somebody called `news`.
    fn hear(&mut self, ring: &mut Raw<'_>, got: &Got) {
        let answer = sqe::answer(got.cqe.token, 0, 0);
        if got.cqe.badge & GOAL != 0 {
            self.goal = got.cqe.badge & !GOAL;
            return self.push(ring, answer, ANSWER);
        }
        let (vandal, seed) = of_badge(got.cqe.badge);
        self.seed = seed;
        match self.hello.get_mut(vandal) {
            Some(hello) if got.cqe.method == HELLO => {
                *hello = Some(got.cqe.token);
                if vandal < CAREFUL {
                    self.start(ring, vandal);
                }
                return;
            }
            _ => {}
        }
        if let Some(news) = self.news.get_mut(vandal) {
            *news = News::from_words(core::array::from_fn(|word| got.words[word]));
        }
        self.push(ring, answer, ANSWER);
    }

    /// Lets a vandal begin, if it asked to.
    fn start(&mut self, ring: &mut Raw<'_>, vandal: usize) -> bool {
        let Some(token) = self.hello[vandal].take() else { return false };
        let seed = self.seed.wrapping_add(vandal as u64 * 0x1_0001);
        let start = Start { seed, is_reckless: vandal >= CAREFUL };
        ring.put(START_SLOT, &start.to_words());
        self.push(ring, sqe::answer(token, START_SLOT, 16), ANSWER);
        self.lives[vandal] = Life::Runs;
        // The slot is free once this is done.
        let _ = ring.dispatch();
        true
    }

    /// The reckless come one after the other, so that what each gives back can be told.
    fn take_turns(&mut self, ring: &mut Raw<'_>) {
        let Some(turn) = self.turn else {
            // The careful have made their threads by then.
            if self.next < VANDALS && self.news.iter().all(|news| news.operations > 0) {
                let vandal = self.next;
                self.look(ring);
                let frames = self.frames;
                if self.start(ring, vandal) {
                    let given_up_ns = now_ns().saturating_add(PATIENCE_NS);
                    self.turn = Some(Turn { vandal, frames, given_up_ns });
                    self.next += 1;
                }
            }
            return;
        };
        if !self.has_ended(turn.vandal) {
            if now_ns() >= turn.given_up_ns {
                self.left_alone += 1;
                self.turn = None;
            }
            return;
        }
        self.settle(ring, turn);
        self.turn = None;
    }

    /// What is left of a vandal is given back, and nothing else.
    fn settle(&mut self, ring: &mut Raw<'_>, turn: Turn) {
        // One that was left alone may have made threads since.
        let is_exact = self.left_alone == 0;
        let until_ns = now_ns().saturating_add(SETTLE_NS);
        let (mut last, mut same) = (0, 0);
        loop {
            self.call_the_peer(ring);
            self.look(ring);
            let back = turn.frames.wrapping_sub(self.frames);
            same = if back == last { same + 1 } else { 0 };
            last = back;
            match self.given_back {
                Some(expected) if back == expected => {
                    self.is_sure = true;
                    return;
                }
                Some(_) if now_ns() >= until_ns => {
                    if !self.is_sure {
                        self.given_back = Some(back);
                    } else if is_exact {
                        self.unequal.get_or_insert(back);
                    }
                    return;
                }
                None if same == SAME_LOOKS => {
                    self.given_back = (turn.vandal > CAREFUL).then_some(back);
                    return;
                }
                _ if ring.failures() != 0 => return,
                _ => {}
            }
        }
    }

    /// Frames in use outside the heap, which keeps an empty page of each size for the next object.
    fn look(&mut self, ring: &mut Raw<'_>) {
        self.push(ring, sqe::call_info(cap(self.env, "info"), 0, 0, 0), LOOK);
        let got = self.wait_for(ring, LOOK);
        match got.results::<MachineResults>() {
            Some(MachineResults { machine }) => {
                self.frames = machine.frames_total - machine.frames_free - machine.heap_frames;
            }
            None => ring.fail(format_args!("the machine's counters: {:?}", got.cqe)),
        }
    }

    /// Ends what is under way.
    fn withdraw(&mut self, ring: &mut Raw<'_>) {
        let names = [RECV].into_iter().chain((0..VANDALS as u64).map(|vandal| LIFE + vandal));
        for name in names.chain((0..VANDALS as u64).map(|vandal| SURE + vandal)) {
            self.push(ring, sqe::cancel(name), CANCEL);
        }
        while self.pending > 0 {
            let got = ring.wait();
            self.pending -= 1;
            if got.cqe.status == u8::MAX {
                return;
            }
        }
    }
}

/// A capability named by letters and a number below 100.
fn numbered(env: &Env, letters: &str, number: usize) -> CapSlot {
    let mut name = [0; 8];
    let digits = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
    let digits = if number < 10 { &digits[1..] } else { &digits[..] };
    let mut length = 0;
    for (to, from) in name.iter_mut().zip(letters.bytes().chain(digits.iter().copied())) {
        *to = from;
        length += 1;
    }
    cap(env, core::str::from_utf8(&name[..length]).unwrap_or_default())
}
