//! From a seed to a verdict.

use crate::{Config, Done, Fault, Machine, Options, Report, Rng, Workload};
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
pub fn run_with<P: Policy + 'static>(
    config: Config,
    workload: Workload,
    name: &str,
    policy: impl Fn() -> P,
) -> Done<Report> {
    let mut machine = Machine::new(config, workload.room(config.cpus), policy);
    let outcome = workload.run(&mut machine);
    let report = machine.report();
    outcome.map(|()| report).map_err(|mut failure| {
        let words = format!(
            "--seed {} --policy {name} --workload {} --cpus {}",
            config.seed,
            workload.name(),
            config.cpus,
        );
        failure.replay = match config.fault {
            Fault::None => format!(
                "replay: ./bazelw run //test/sim:sim -- {words}\n\
                 keep:   echo '{words} # {:?}' >> {KEPT_FILE}",
                failure.rule,
            ),
            fault => format!("with {fault:?} planted: {words}"),
        };
        failure
    })
}

/// The runs that once failed, each of them part of every test run: a line has the words of the
/// command line, then `#` and a remark.
pub const KEPT_FILE: &str = "test/sim/kept.txt";

/// The runs of such a file, with their lines; or what is wrong with one of them.
pub fn kept_runs(text: &str) -> Result<Vec<(&str, Options)>, String> {
    let mut runs = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words = line.split('#').next().unwrap_or("").trim();
        if words.is_empty() {
            continue;
        }
        let refused = |error| format!("{KEPT_FILE}, line {number}: {error}");
        let options = Options::parse(words.split_whitespace()).map_err(refused)?;
        if options.seeds.is_none() {
            return Err(refused(format!("`{words}` names no seed, as --seed 17 would")));
        }
        runs.push((words, options));
    }
    Ok(runs)
}
