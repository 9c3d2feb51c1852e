//! What threads do.

use crate::Rng;
use core_sched::CpuSet;
use core_sched_policy::Share;

/// One thing a thread does.
pub enum Step {
    /// Computes for so long.
    Run(u64),
    /// Waits for the clock.
    Sleep(u64),
    /// Lets another run.
    Yield,
    /// Calls a service, which computes for so long, and waits for the answer.
    Call {
        /// Which.
        service: usize,
        /// What the server has to do.
        work_ns: u64,
    },
    /// Answers the call being served, if there is one, and waits for the next.
    Serve {
        /// Which service.
        service: usize,
    },
    /// Waits until as many as the gate holds have come; then all go on.
    Meet {
        /// Which gate.
        gate: usize,
    },
    /// Makes a thread.
    Spawn {
        /// Its share.
        share: Share,
        /// Its process; `None` for that of its maker.
        process: Option<u32>,
        /// What it does.
        program: Program,
    },
    /// Gives another weight or class to a thread, by its number.
    Reweigh {
        /// Whose.
        slot: u32,
        /// Which.
        share: Share,
    },
    /// Says where a thread may run, by its number.
    Confine {
        /// Whose.
        slot: u32,
        /// Where.
        mask: CpuSet,
    },
    /// Ends the process of a thread, by the thread's number, and so all its threads.
    Kill {
        /// Whose.
        slot: u32,
    },
    /// Ends.
    Exit,
}

/// What a program may look at.
pub struct Context<'a> {
    /// Chance.
    pub rng: &'a mut Rng,
    /// Numbers that programs share: tasks left, rounds done.
    pub shared: &'a mut [u64],
    /// The time.
    pub now_ns: u64,
    /// What the call being served asks for.
    pub work_ns: u64,
    /// Its own number.
    pub slot: u32,
}

/// Says what a thread does next, whenever it has done the last thing.
pub type Program = Box<dyn FnMut(&mut Context<'_>) -> Step>;

/// Computes for ever.
pub(crate) fn hog() -> Program {
    Box::new(|_| Step::Run(u64::MAX / 4))
}

/// Computes and sleeps in turn, each for about so long.
pub(crate) fn sleeper(run_ns: u64, sleep_ns: u64) -> Program {
    let mut runs = false;
    Box::new(move |cx| {
        runs = !runs;
        let about = |rng: &mut Rng, ns: u64| ns / 2 + rng.below(ns) + 1;
        if runs { Step::Run(about(cx.rng, run_ns)) } else { Step::Sleep(about(cx.rng, sleep_ns)) }
    })
}

/// Answers calls for ever.
pub(crate) fn server(service: usize) -> Program {
    let mut serves = false;
    Box::new(move |cx| {
        serves = !serves;
        if serves { Step::Serve { service } } else { Step::Run(cx.work_ns.max(1)) }
    })
}

/// Thinks and calls in turn, each for about so long.
pub(crate) fn client(service: usize, think_ns: u64, work_ns: u64) -> Program {
    let mut thinks = false;
    Box::new(move |cx| {
        thinks = !thinks;
        if thinks {
            return Step::Run(think_ns / 2 + cx.rng.below(think_ns) + 1);
        }
        Step::Call { service, work_ns: work_ns / 2 + cx.rng.below(work_ns) + 1 }
    })
}

/// Does a list of things, then ends.
pub(crate) fn script(steps: Vec<Step>) -> Program {
    let mut steps = steps.into_iter();
    Box::new(move |_| steps.next().unwrap_or(Step::Exit))
}
