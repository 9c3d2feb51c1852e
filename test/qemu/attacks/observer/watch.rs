//! What an observer sees: how long it was kept from its CPU, and what of its own did not work.

use abi_types::{CapSlot, Sqe, Status};
use attack_orders::Order;
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::park::{Parked, park};
use capos_rt::{Env, Error, Pending, now_ns};
use core::sync::atomic::AtomicU32;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::{endpoint, system_info, timer};
use test_bare::program::{Program, Sibling, work};
use test_bare::tls;
use test_kit::{Ended, Outcome, T, check};

/// How long a thread runs while another waits.
pub const SLICE_NS: u64 = 10_000_000;
/// Instructions of a section of kernel code, at most.
const SECTION_NS: u64 = 20_000;

/// The longest time that so many threads of the same weight keep another from its CPU: a slice of each, one
/// more because a slice may have just begun, and a section of kernel code. One attacker: two slices.
const fn gap_ns(threads: u64) -> u64 {
    (threads + 1) * SLICE_NS + SECTION_NS
}

static SIBLINGS: [Sibling; 1] = [const { Sibling::new() }; 1];

/// What the observer's tests share.
pub struct Observer {
    pub program: Program,
    pub echo: CapSlot,
    pub own: CapSlot,
    /// Whether times may be asserted.
    pub is_exact: bool,
    /// The word that the observer's FS base leads to, if it has one.
    pub at_fs: Option<u64>,
    /// Where the observer parks. On its first thread's stack: the attacker has memory at the same address.
    pub word: AtomicU32,
}

/// What came of an attack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Harm {
    /// The longest time without the CPU.
    pub gap_ns: u64,
    /// The observer's own operations, those that failed, and the longest one.
    pub operations: u64,
    pub failed: u64,
    pub longest_ns: u64,
    /// The first that failed, and how it ended.
    pub first: Option<(&'static str, Status)>,
}

/// Something that programs do.
type Operation = fn(&Observer) -> Result<(), Status>;

impl Observer {
    pub fn new(env: &'static Env) -> Result<Self, Error> {
        let program = Program::new(env, &SIBLINGS)?;
        let is_exact = program.cpus() == 1;
        Ok(Self {
            program,
            echo: env.caps.named("echo").unwrap_or(CapSlot::NONE),
            own: env.cap("own", endpoint::INTERFACE_ID)?,
            is_exact,
            at_fs: None,
            word: AtomicU32::new(1),
        })
    }

    /// Page frames in use outside the kernel's heap, and bytes in use in it.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let mut info = system_info::Client::new(self.program.io().large(), self.program.info);
        let machine = info.machine().ok()?.machine;
        let frames = machine.frames_total - machine.frames_free - machine.heap_frames;
        Some((frames, machine.heap_bytes))
    }

    /// Tells an attacker what to do, without waiting for it.
    pub fn order(
        &self,
        attacker: &'static str,
        order: Order,
        until_ns: u64,
        word: u64,
    ) -> Result<Pending, Status> {
        let facet = self
            .program
            .env
            .cap(attacker, plain_schema::plain::INTERFACE_ID)
            .map_err(|_| Status::Disconnected)?;
        self.program.io().submit(call(facet, PLAIN, order as u16, 16), &[until_ns, word])
    }

    /// Computes until then; the longest time between two looks at the clock.
    pub fn latency(&self, until_ns: u64) -> u64 {
        let mut last = now_ns();
        let mut longest = 0;
        while last < until_ns {
            work(if self.is_exact { 16 } else { 2_000 });
            if !self.is_exact {
                core::hint::spin_loop();
            }
            if let Some(expected) = self.at_fs
                && tls::word_at_fs() != expected
            {
                return u64::MAX;
            }
            let now = now_ns();
            longest = longest.max(now - last);
            last = now;
        }
        longest
    }

    /// Does what programs do until then, at least once of each.
    pub fn operations(&self, until_ns: u64, harm: &mut Harm) {
        let mut is_first = true;
        while is_first || now_ns() < until_ns {
            is_first = false;
            let each: [(&'static str, Operation); 6] = [
                ("a call", Self::call_echo),
                ("a sleep", Self::sleep),
                ("a park", Self::park),
                ("a thread", Self::make_a_thread),
                ("a facet", Self::make_a_facet),
                ("a yield", |observer| observer.program.io().yield_now()),
            ];
            for (name, operation) in each {
                let from = now_ns();
                let done = operation(self);
                harm.longest_ns = harm.longest_ns.max(now_ns() - from);
                harm.operations += 1;
                if let Err(status) = done {
                    harm.failed += 1;
                    harm.first.get_or_insert((name, status));
                }
            }
        }
    }

    /// A call with a deadline, to a server that others call too. The deadline is far: it is there to be armed.
    fn call_echo(&self) -> Result<(), Status> {
        const FAR_NS: u64 = 3_600_000_000_000;
        let mut words = [0; 16];
        let word = now_ns();
        let sqe = Sqe { arg: word + FAR_NS, ..call(self.echo, PLAIN, 0, 8) };
        let cqe = self.program.io().run(sqe, &[word], &mut words)?;
        capos_rt::io::ok(status_of(&cqe))?;
        if words[0] == word { Ok(()) } else { Err(Status::InvalidArgument) }
    }

    fn sleep(&self) -> Result<(), Status> {
        let slept = timer::Client::new(self.program.io().caller(), self.program.timer).sleep(1_000);
        slept.map_err(|_| Status::Exception)
    }

    fn park(&self) -> Result<(), Status> {
        match park(self.program.io(), self.program.park, &self.word, 1, 100_000)? {
            Parked::TimedOut => Ok(()),
            _ => Err(Status::Woken),
        }
    }

    fn make_a_thread(&self) -> Result<(), Status> {
        let made = self.program.spawn(0, |child| child.argument as i64, 7);
        match made.and_then(|handle| self.program.finish(handle)) {
            Ok(7) => Ok(()),
            _ => Err(Status::Exception),
        }
    }

    fn make_a_facet(&self) -> Result<(), Status> {
        let mut own = endpoint::Client::new(self.program.io().caller(), self.own);
        let facet = own.mint_facet(99, 0).map_err(|_| Status::Exception)?;
        let slot = CapSlot::new(facet.facet_index.into(), facet.facet_generation);
        own.revoke_facets(99).map_err(|_| Status::Exception)?;
        self.program.release(slot)
    }
}

/// How long the observer computes, and then does other things, beside an attack.
const COMPUTES_NS: u64 = 60_000_000;
const OPERATES_NS: u64 = 30_000_000;

/// Has an attacker do something, looks at what comes of it, and takes the attacker's answer: the second
/// word of it. `ends` says that there is none, because the attacker is gone.
pub fn beside(
    t: &mut T<'_, Observer>,
    attacker: &'static str,
    order: Order,
    word: u64,
    ends: bool,
) -> Result<(Harm, u64), Ended> {
    let observer = &*t.env;
    let scale = if observer.is_exact { 1 } else { 10 };
    let from = now_ns();
    let computes = from + COMPUTES_NS / scale;
    let until = computes + OPERATES_NS / scale;
    let Ok(pending) = observer.order(attacker, order, until, word) else {
        return Err(t.fail(format_args!("{attacker} cannot be told")).unwrap_err());
    };
    observer.program.io().flush();
    let mut harm = Harm { gap_ns: observer.latency(computes), ..Harm::default() };
    observer.operations(until, &mut harm);
    let mut words = [0; 16];
    let status = status_of(&observer.program.io().wait(pending, &mut words));
    let expected = if ends { Status::Disconnected } else { Status::Ok };
    check!(t, status == expected, "{attacker} answered with {status:?}");
    check!(t, ends || words[0] > 0, "{attacker} did nothing");
    if t.env.is_exact {
        if !ends {
            t.metric("rounds", words[0], "");
        }
        t.metric("longest gap", harm.gap_ns, "ns");
        t.metric("longest operation", harm.longest_ns, "ns");
    }
    Ok((harm, words[1]))
}

/// Nothing of the observer's failed, and nothing took longer than beside as many threads that compute.
pub fn judge(t: &mut T<'_, Observer>, harm: &Harm, threads: u64) -> Outcome {
    check!(
        t,
        harm.failed == 0,
        "{} of {} operations failed, first {:?}",
        harm.failed,
        harm.operations,
        harm.first
    );
    if t.env.is_exact {
        let (gap, longest) = (harm.gap_ns, harm.longest_ns);
        let right = gap_ns(threads);
        check!(t, gap <= right, "{gap} ns without a CPU; {right} are right");
        // An operation waits for its turn at most twice: itself, and its server or a thread that it made.
        let right = 2 * right;
        check!(t, longest <= right, "an operation of {longest} ns; {right} are right");
    } else {
        check!(t, harm.gap_ns != u64::MAX, "the FS base is another's");
    }
    Ok(())
}
