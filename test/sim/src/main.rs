//! Runs one seed and says what happened, or many until one fails.
//!
//! `sim --help` lists the options.

use core_sched_policy::{AnyPolicy, VirtualTime};
use std::path::Path;
use std::process::ExitCode;
use test_sim::{Done, Machine, Options, Report, USAGE, run_with};

/// The status for words that are not understood, or a file that cannot be written.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sim: {error}");
            return ExitCode::from(MISUSED);
        }
    };
    if options.is_help {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let seeds = options.seeds();
    if seeds.start() == seeds.end() {
        return one(&options, *seeds.start());
    }
    for seed in seeds {
        match many(&options, seed) {
            Ok(report) => println!("seed {seed}: {} events, nothing is broken", report.events),
            Err(failure) => {
                println!("seed {seed}: {failure}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// One seed of several.
fn many(options: &Options, seed: u64) -> Done<Report> {
    let (config, workload) = options.of(seed);
    let kind = options.kind;
    run_with(config, workload, kind.name(), || AnyPolicy::new(kind, VirtualTime::default()))
}

/// One seed, in detail.
fn one(options: &Options, seed: u64) -> ExitCode {
    let (config, workload) = options.of(seed);
    let kind = options.kind;
    let on = format!("{} on {} CPUs under {}", workload.name(), config.cpus, kind.name());
    let title = format!("seed {seed}: {on}");
    println!("{title}");
    let room = workload.room(config.cpus);
    let mut machine = Machine::new(config, room, || AnyPolicy::new(kind, VirtualTime::default()));
    let outcome = workload.run(&mut machine);
    if let Some(trace) = machine.take_trace() {
        if options.is_verbose {
            for (cpu, slot, from_ns, to_ns) in trace.spans() {
                println!("{from_ns:>12} – {to_ns:>12} ns  CPU {cpu:>3}  thread {slot}");
            }
        }
        if let Some(path) = &options.trace {
            // As the person meant it: from where the command was typed.
            let path = std::env::var_os("BUILD_WORKING_DIRECTORY")
                .map_or(path.clone(), |folder| Path::new(&folder).join(path));
            if let Err(error) = std::fs::write(&path, trace.to_json(&title).to_string()) {
                let name = path.display();
                eprintln!("sim: --trace takes a file that can be written; {name}: {error}");
                return ExitCode::from(MISUSED);
            }
            println!("timeline: {} (open it in a trace viewer)", path.display());
        }
    }
    println!("{:#?}", machine.report());
    match outcome {
        Ok(()) => {
            println!("nothing is broken");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            (0..machine.config.cpus).for_each(|cpu| print!("{}", machine.queue_text(cpu)));
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
