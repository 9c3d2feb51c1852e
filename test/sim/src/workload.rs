//! Mixes of threads that a seed runs, and what has to come of them.

use crate::program::{client, hog, server, sleeper};
use crate::{Done, MS, Machine, Program, Rng, Rule, S, Step, US};
use core_sched::{CpuId, CpuSet, balance::BALANCE_PERIOD_NS};
use core_sched_policy::{LatencyClass, Policy, QUANTUM_NS, Share, Weight};

/// A kind of mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Equal threads that only compute.
    Hogs,
    /// Threads of all weights and classes that only compute.
    Weights,
    /// Threads that compute and sleep, beside some that only compute.
    Sleepers,
    /// Clients and servers, beside threads that only compute.
    Ipc,
    /// Weights and classes change all the time.
    Reweigh,
    /// Threads come and go.
    Storm,
    /// Threads are confined to some CPUs, then to others.
    Migrate,
    /// Threads meet at gates.
    Gates,
    /// Threads are killed wherever they are.
    Kill,
    /// All of it.
    Mix,
}

/// The first numbers of processes of clients, and of processes that are killed: no others have them.
const FIRST_CLIENT: u32 = 1 << 10;
const FIRST_MORTAL: u32 = 1 << 12;

/// Any weight and class; the usual ones often.
pub(crate) fn any_share(rng: &mut Rng) -> Share {
    let weight = match rng.below(4) {
        0 => rng.between(1, 1024) as u16,
        1 => rng.pick(&[1, 16, 200, 1024]),
        _ => 64,
    };
    Share::new(Weight::new(weight).expect("a weight"), rng.pick(&LatencyClass::ALL))
}

/// Some CPUs, at least one.
fn any_mask(rng: &mut Rng, cpus: usize) -> CpuSet {
    let cpu = CpuId::new(rng.below(cpus as u64) as usize).expect("a CPU");
    let bits = u128::from(rng.number()) << 64 | u128::from(rng.number());
    CpuSet::from_bits(bits).and(CpuSet::first_n(cpus)).with(cpu)
}

impl Workload {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Hogs,
        Self::Weights,
        Self::Sleepers,
        Self::Ipc,
        Self::Reweigh,
        Self::Storm,
        Self::Migrate,
        Self::Gates,
        Self::Kill,
        Self::Mix,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hogs => "hogs",
            Self::Weights => "weights",
            Self::Sleepers => "sleepers",
            Self::Ipc => "ipc",
            Self::Reweigh => "reweigh",
            Self::Storm => "storm",
            Self::Migrate => "migrate",
            Self::Gates => "gates",
            Self::Kill => "kill",
            Self::Mix => "mix",
        }
    }

    /// The kind of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Room it needs for threads.
    pub fn room(self, cpus: usize) -> usize {
        40 + 16 * cpus
    }

    /// How long it runs on so many CPUs; events cost the same however many there are.
    pub fn length_ns(self, cpus: usize) -> u64 {
        match cpus {
            0..=8 => 6 * S,
            9..=32 => 2 * S,
            _ => S,
        }
    }

    /// Runs it to its end and judges it.
    pub fn run<P: Policy + 'static>(self, m: &mut Machine<P>) -> Done {
        let mut rng = Rng::new(m.config.seed.wrapping_mul(31).wrapping_add(7));
        let length_ns = self.length_ns(m.config.cpus);
        if self == Self::Hogs {
            return equal_hogs(m, &mut rng, length_ns);
        }
        let hogs = self.populate(m, &mut rng)?;
        m.run_until(length_ns / 4)?;
        let ran = m.measure(&hogs, length_ns - length_ns / 4)?;
        if let Some(at) = ran.iter().position(|&ns| ns == 0) {
            let (least_weight, is_confined, weights) = m.sim.with(|w| {
                let thread = w.thread(hogs[at]);
                (thread.least_weight, thread.confined_ns > 0, w.weights)
            });
            // It may have got its present weight a moment ago.
            let weight = u64::from(m.entity(hogs[at])?.share().weight().get());
            let weight = weight.min(least_weight).max(1);
            // All the others may be where it is confined to.
            let cpus = if is_confined { 1 } else { m.config.cpus as u64 };
            // The lightest of many has not had its turn in so short a time.
            let turn_ns = weights / weight * QUANTUM_NS / cpus;
            if turn_ns < length_ns / 4 {
                let detail = format!("thread {} of weight {weight} never ran", hogs[at]);
                return m.fail(Rule::Unfair, detail);
            }
        }
        if m.config.cpus == 1 && self == Self::Weights {
            return weighted_shares(m, &hogs);
        }
        Ok(())
    }

    /// The process of the `n`th of some threads: one for all, but for those that are killed.
    fn process(self, shared: u32, n: u32) -> u32 {
        if self == Self::Kill { FIRST_MORTAL + n } else { shared }
    }

    /// Makes the threads; the numbers of those that only compute.
    fn populate<P: Policy + 'static>(self, m: &mut Machine<P>, rng: &mut Rng) -> Done<Vec<u32>> {
        let cpus = m.config.cpus;
        let mut hogs = Vec::new();
        let per_cpu = match self {
            Self::Weights => rng.between(4, 6),
            Self::Storm | Self::Kill | Self::Gates => 1,
            _ => rng.between(1, 2),
        };
        let varied = !matches!(self, Self::Gates | Self::Ipc);
        for n in 0..per_cpu * cpus as u64 {
            let share = if varied { any_share(rng) } else { Share::default() };
            hogs.push(m.spawn(n as usize % cpus, share, n as u32 % 7, hog())?);
        }
        let all = self == Self::Mix;
        let some = if all { (cpus / 2).max(1) } else { 2 * cpus };
        if all || matches!(self, Self::Sleepers | Self::Reweigh | Self::Migrate | Self::Kill) {
            for n in 0..some {
                let (run_ns, sleep_ns) = (rng.between(US, 20 * MS), rng.between(US, 60 * MS));
                let process = self.process(9, n as u32);
                m.spawn(n % cpus, any_share(rng), process, sleeper(run_ns, sleep_ns))?;
            }
            for n in 0..some.div_ceil(8) {
                let sleep_ns = rng.between(S / 2, 2 * S);
                let process = self.process(10, (some + n) as u32);
                m.spawn(n % cpus, any_share(rng), process, sleeper(sleep_ns / 2, sleep_ns))?;
            }
        }
        if all || matches!(self, Self::Ipc | Self::Kill) {
            for n in 0..some.div_ceil(2) {
                callers(m, rng, self, n as u32)?;
            }
        }
        if all || self == Self::Storm {
            for n in 0..some.div_ceil(2) {
                m.spawn(n % cpus, any_share(rng), 3, spawner(rng.between(100 * US, 4 * MS)))?;
            }
        }
        if all || self == Self::Gates {
            for _ in 0..some.div_ceil(4) {
                meeting(m, rng)?;
            }
        }
        if all || matches!(self, Self::Reweigh | Self::Migrate | Self::Kill) {
            let (length, meddles) = (self.room(cpus) as u64, self);
            let last_hog = hogs.iter().copied().max().unwrap_or(0);
            let program = meddler(meddles, length, last_hog, cpus);
            m.spawn(0, Share::default(), 1, program)?;
        }
        Ok(hogs)
    }
}

/// Some clients of one service with one or two servers.
fn callers<P: Policy + 'static>(
    m: &mut Machine<P>,
    rng: &mut Rng,
    kind: Workload,
    group: u32,
) -> Done {
    let service = m.add_service(64);
    let work_ns = rng.between(2 * US, 2 * MS);
    for n in 0..rng.between(1, if kind == Workload::Kill { 1 } else { 2 }) {
        let process = Machine::<P>::serving(service);
        m.spawn(n as usize % m.config.cpus, any_share(rng), process, server(service))?;
    }
    for n in 0..rng.between(1, 3) {
        let think_ns = rng.between(2 * US, 3 * MS);
        let program = client(service, think_ns, work_ns);
        let process = kind.process(FIRST_CLIENT + group, FIRST_CLIENT + 4 * group + n as u32);
        m.spawn(n as usize % m.config.cpus, any_share(rng), process, program)?;
    }
    Ok(())
}

/// A thread that makes threads, which do a little and end.
fn spawner(pause_ns: u64) -> Program {
    let mut spawns = false;
    Box::new(move |cx| {
        spawns = !spawns;
        if !spawns {
            return Step::Sleep(pause_ns / 2 + cx.rng.below(pause_ns));
        }
        let run_ns = cx.rng.between(US, 5 * MS);
        let steps = match cx.rng.below(4) {
            0 => vec![Step::Run(run_ns), Step::Sleep(run_ns), Step::Run(run_ns / 2)],
            1 => vec![Step::Run(run_ns), Step::Yield, Step::Run(run_ns)],
            2 => vec![],
            _ => vec![Step::Run(run_ns)],
        };
        let share = any_share(cx.rng);
        let process = Some(cx.rng.below(50) as u32);
        Step::Spawn { share, process, program: crate::program::script(steps) }
    })
}

/// A group that computes and meets, over and over.
fn meeting<P: Policy + 'static>(m: &mut Machine<P>, rng: &mut Rng) -> Done {
    let size = rng.between(2, 6);
    let gate = m.add_gate(size);
    let run_ns = rng.between(10 * US, 3 * MS);
    for n in 0..size {
        let mut runs = false;
        let program: Program = Box::new(move |cx| {
            runs = !runs;
            if runs { Step::Run(run_ns / 2 + cx.rng.below(run_ns)) } else { Step::Meet { gate } }
        });
        m.spawn(n as usize % m.config.cpus, Share::default(), 30, program)?;
    }
    Ok(())
}

/// A thread that changes, moves or kills others.
fn meddler(what: Workload, threads: u64, last_hog: u32, cpus: usize) -> Program {
    let mut sleeps = false;
    Box::new(move |cx| {
        sleeps = !sleeps;
        if sleeps {
            return Step::Sleep(cx.rng.between(200 * US, 20 * MS));
        }
        // The first record is the reaper's.
        let slot = 1 + cx.rng.below(threads) as u32;
        let share = any_share(cx.rng);
        match what {
            Workload::Reweigh => Step::Reweigh { slot, share },
            Workload::Kill if slot > last_hog && slot != cx.slot => Step::Kill { slot },
            Workload::Kill => Step::Yield,
            Workload::Migrate => Step::Confine { slot, mask: any_mask(cx.rng, cpus) },
            _ if cx.rng.one_in(2) => Step::Reweigh { slot, share },
            _ => Step::Confine { slot, mask: any_mask(cx.rng, cpus) },
        }
    })
}

/// Equal threads get equal time.
fn equal_hogs<P: Policy + 'static>(m: &mut Machine<P>, rng: &mut Rng, length_ns: u64) -> Done {
    let cpus = m.config.cpus as u64;
    let threads = rng.between(1, 5 * cpus);
    let mut slots = Vec::new();
    for n in 0..threads {
        slots.push(m.spawn((n % cpus) as usize, Share::default(), 0, hog())?);
    }
    m.run_until(length_ns / 4)?;
    let window_ns = length_ns - length_ns / 4;
    let ran = m.measure(&slots, window_ns)?;
    let fair_ns = window_ns * cpus.min(threads) / threads;
    // A thread is in company on a CPU for a period at a time.
    let slack_ns = fair_ns / 10 + 2 * BALANCE_PERIOD_NS;
    if let Some(at) = ran.iter().position(|r| r.abs_diff(fair_ns) > slack_ns) {
        let detail = format!(
            "{threads} threads on {cpus} CPUs: {} got {} of {fair_ns} ns",
            { slots[at] },
            { ran[at] }
        );
        return m.fail(Rule::Unfair, detail);
    }
    Ok(())
}

/// On one CPU weights divide the time.
fn weighted_shares<P: Policy + 'static>(m: &mut Machine<P>, hogs: &[u32]) -> Done {
    let weights: Vec<u64> = hogs
        .iter()
        .map(|&slot| Ok(u64::from(m.entity(slot)?.share().weight().get())))
        .collect::<Done<_>>()?;
    let sum: u64 = weights.iter().sum();
    let window_ns = 10 * S;
    let ran = m.measure(hogs, window_ns)?;
    for ((&slot, &weight), &got_ns) in hogs.iter().zip(&weights).zip(&ran) {
        let fair_ns = window_ns * weight / sum;
        let slack_ns = fair_ns / 50 + 5 * QUANTUM_NS;
        if got_ns.abs_diff(fair_ns) > slack_ns {
            let detail = format!("thread {slot} of weight {weight}: {got_ns} of {fair_ns} ns");
            return m.fail(Rule::Unfair, detail);
        }
    }
    Ok(())
}
