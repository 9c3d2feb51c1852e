//! Runs one seed and says what happened.
//!
//! `sim --seed N [--policy wfq|eevdf] [--workload NAME] [--cpus N] [--verbose] [--trace FILE]`

use core_sched_policy::{AnyPolicy, PolicyKind, VirtualTime};
use lexopt::prelude::*;
use test_sim::{Config, Machine, Slab, Workload, of_seed};

const USAGE: &str = "sim --seed N [--policy wfq|eevdf] [--workload NAME] [--cpus N] \
                     [--verbose] [--trace FILE]";

struct Options {
    config: Config,
    workload: Workload,
    kind: PolicyKind,
    verbose: bool,
    trace: Option<std::path::PathBuf>,
}

fn options() -> Result<Options, lexopt::Error> {
    let (mut seed, mut cpus, mut workload) = (0, None, None);
    let (mut kind, mut verbose, mut trace) = (PolicyKind::default(), false, None);
    let mut parser = lexopt::Parser::from_env();
    while let Some(word) = parser.next()? {
        match word {
            Long("seed") => seed = parser.value()?.parse()?,
            Long("cpus") => cpus = Some(parser.value()?.parse()?),
            Long("policy") => {
                let name = parser.value()?.string()?;
                kind = PolicyKind::named(&name).ok_or("the policy is wfq or eevdf")?;
            }
            Long("workload") => {
                let name = parser.value()?.string()?;
                let names = Workload::ALL.map(Workload::name).join(", ");
                let found = Workload::named(&name);
                workload = Some(found.ok_or_else(|| format!("the workload is one of {names}"))?);
            }
            Long("verbose") => verbose = true,
            Long("trace") => trace = Some(parser.value()?.into()),
            Long("help") => return Err(USAGE.into()),
            other => return Err(other.unexpected()),
        }
    }
    let (mut config, usual) = of_seed(seed);
    config.cpus = cpus.unwrap_or(config.cpus);
    config.traces = verbose || trace.is_some();
    Ok(Options { config, workload: workload.unwrap_or(usual), kind, verbose, trace })
}

fn main() {
    let options = options().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(2);
    });
    let Options { config, workload, kind, .. } = options;
    let title = format!(
        "seed {}: {} on {} CPUs under {}",
        config.seed,
        workload.name(),
        config.cpus,
        kind.name()
    );
    println!("{title}");
    let slab = Slab::new(workload.room(config.cpus));
    let mut machine = Machine::new(&slab, config, || AnyPolicy::new(kind, VirtualTime::default()));
    let outcome = workload.run(&mut machine);
    if let Some(trace) = &machine.trace {
        if options.verbose {
            for (cpu, slot, from_ns, to_ns) in trace.spans() {
                println!("{from_ns:>12} – {to_ns:>12} ns  CPU {cpu:>3}  thread {slot}");
            }
        }
        if let Some(path) = &options.trace {
            std::fs::write(path, trace.to_json(&title).to_string()).unwrap_or_else(|error| {
                eprintln!("{}: {error}", path.display());
                std::process::exit(2);
            });
            println!("timeline: {} (open it in a trace viewer)", path.display());
        }
    }
    println!("{:#?}", machine.report);
    match outcome {
        Ok(()) => println!("nothing is broken"),
        Err(failure) => {
            (0..machine.config.cpus).for_each(|cpu| print!("{}", machine.queue_text(cpu)));
            println!("{failure}");
            std::process::exit(1);
        }
    }
}
