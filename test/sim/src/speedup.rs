//! Jobs with a fixed amount of work, to see how much faster more CPUs do them.

use crate::program::server;
use crate::{Config, Done, MS, Machine, Program, Rule, S, Step, US};
use core_sched_policy::{Policy, Share};

/// Threads of a job: four for each CPU of the largest machine.
const THREADS: u64 = 128;
/// No job takes longer.
const LIMIT_NS: u64 = 60 * S;

/// A job of equal threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Every thread maps its part, all meet, every thread reduces a part, all meet, one merges.
    MapReduce,
    /// Threads take tasks of very different length from one pool.
    UnevenTasks,
    /// Threads meet after every few milliseconds.
    Barriers,
    /// Every thread is a process of its own.
    Processes,
    /// Threads of one process that also wait for a device now and then.
    Siblings,
    /// Clients of one service with a pool of servers.
    CapabilityService,
}

/// How a job went.
#[derive(Clone, Copy, Debug)]
pub struct JobTimes {
    /// When the last thread ended.
    pub total_ns: u64,
    /// Useful work done in all.
    pub work_ns: u64,
    /// Useful work done in the first half of the time.
    pub work_by_half_ns: u64,
}

impl Job {
    /// Every job.
    pub const ALL: [Self; 6] = [
        Self::MapReduce,
        Self::UnevenTasks,
        Self::Barriers,
        Self::Processes,
        Self::Siblings,
        Self::CapabilityService,
    ];

    /// Does the job.
    pub fn run<P: Policy + 'static>(self, cpus: usize, policy: impl Fn() -> P) -> Done<JobTimes> {
        let total_ns = self.time(cpus, &policy, LIMIT_NS)?.0;
        let (_, work_by_half_ns) = self.time(cpus, &policy, total_ns / 2)?;
        let (_, work_ns) = self.time(cpus, &policy, LIMIT_NS)?;
        Ok(JobTimes { total_ns, work_ns, work_by_half_ns })
    }

    /// When it ended, and the work done by then or by `until_ns`.
    fn time<P: Policy + 'static>(
        self,
        cpus: usize,
        policy: &impl Fn() -> P,
        until_ns: u64,
    ) -> Done<(u64, u64)> {
        let mut m = Machine::new(Config::new(cpus, 1), 2 * THREADS as usize + 8, policy);
        let servers = self.start(&mut m)?;
        m.run_while(until_ns, |report| report.exits < THREADS)?;
        if m.report().exits < THREADS && until_ns == LIMIT_NS {
            return m.fail(Rule::Stuck, format!("{self:?} on {cpus} CPUs has {servers} servers"));
        }
        let work_ns = m.work_done_ns();
        Ok((m.now_ns(), work_ns))
    }

    /// Makes the threads; how many of them only serve.
    fn start<P: Policy + 'static>(self, m: &mut Machine<P>) -> Done<u64> {
        let gate = m.add_gate(THREADS);
        m.share(vec![4_000]);
        let mut servers = 0;
        if self == Self::CapabilityService {
            let service = m.add_service(2 * THREADS as u32);
            servers = THREADS;
            for n in 0..servers {
                let process = Machine::<P>::serving(service);
                m.spawn(n as usize % m.config.cpus, Share::default(), process, server(service))?;
            }
        }
        for n in 0..THREADS {
            let process = if self == Self::Processes { 10 + n as u32 } else { 0 };
            let program = self.program(n, gate);
            m.spawn(n as usize % m.config.cpus, Share::default(), process, program)?;
        }
        Ok(servers)
    }

    fn program(self, n: u64, gate: usize) -> Program {
        let mut turn = 0u64;
        Box::new(move |cx| {
            turn += 1;
            let mut about = |ns: u64| ns - ns / 10 + cx.rng.below(ns / 5);
            match self {
                Self::MapReduce => match turn {
                    1 => Step::Run(about(100 * MS)),
                    3 => Step::Run(about(10 * MS)),
                    2 | 4 => Step::Meet { gate },
                    5 if n == 0 => Step::Run(2 * MS),
                    _ => Step::Exit,
                },
                Self::UnevenTasks => {
                    if cx.shared[0] == 0 {
                        return Step::Exit;
                    }
                    cx.shared[0] -= 1;
                    // Most are short, a few thirty times as long; the same ones on any machine.
                    let length = crate::Rng::new(cx.shared[0]).below(32);
                    Step::Run(500 * US + length * length * 8 * US)
                }
                Self::Barriers => match turn {
                    41.. => Step::Exit,
                    _ if turn % 2 == 1 => Step::Run(about(5 * MS)),
                    _ => Step::Meet { gate },
                },
                Self::Processes => match turn {
                    1 => Step::Run(110 * MS),
                    _ => Step::Exit,
                },
                Self::Siblings => match turn {
                    201.. => Step::Exit,
                    _ if turn % 2 == 1 => Step::Run(about(MS)),
                    _ => Step::Sleep(about(200 * US)),
                },
                Self::CapabilityService => match turn {
                    801.. => Step::Exit,
                    _ if turn % 2 == 1 => Step::Run(about(200 * US)),
                    _ => Step::Call { service: 0, work_ns: 50 * US },
                },
            }
        })
    }
}
