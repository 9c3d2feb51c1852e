//! From a seed to a verdict.

use crate::{Config, Done, Fault, Machine, Report, Rng, Slab, Workload};
use core_sched_policy::{AnyPolicy, Policy, PolicyKind, VirtualTime};

/// How many CPUs a seed has: 150 seeds have up to 8, 40 up to 32, 10 up to 128; after the first
/// two hundred it goes round.
pub fn cpus_of_seed(seed: u64) -> usize {
    let mut rng = Rng::new(seed ^ 0xc0ffee);
    let (low, high) = match seed % 200 {
        0..150 => (1, 8),
        150..190 => (9, 32),
        190..199 => (33, 128),
        _ => (128, 128),
    };
    rng.between(low, high) as usize
}

/// The machine and the workload of a seed.
pub fn of_seed(seed: u64) -> (Config, Workload) {
    let mut config = Config::new(cpus_of_seed(seed), seed);
    config.threads_per_core = [1, 2][(seed / 10 % 2) as usize];
    (config, Workload::ALL[(seed % 10) as usize])
}

/// Runs a seed under one of the kernel's policies.
pub fn run_seed(seed: u64, kind: PolicyKind) -> Done<Report> {
    let (config, workload) = of_seed(seed);
    run_with(config, workload, kind.name(), || AnyPolicy::new(kind, VirtualTime::default()))
}

/// Runs a workload on a machine under any policy; `name` is for the replay command.
pub fn run_with<P: Policy>(
    config: Config,
    workload: Workload,
    name: &str,
    policy: impl Fn() -> P,
) -> Done<Report> {
    let slab = Slab::new(workload.room(config.cpus));
    let mut machine = Machine::new(&slab, config, policy);
    let outcome = workload.run(&mut machine);
    let report = machine.report;
    outcome.map(|()| report).map_err(|mut failure| {
        let fault = match config.fault {
            Fault::None => String::new(),
            fault => format!(" ({fault:?} planted)"),
        };
        failure.replay = format!(
            "./bazelw run //test/sim:sim -- --seed {} --policy {name} --workload {} --cpus {}{fault}",
            config.seed,
            workload.name(),
            config.cpus,
        );
        failure
    })
}
