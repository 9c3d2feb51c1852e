//! `./bazelw run //runtime/fiber/bench:peers`: measures the fiber runtime beside its peers.

use std::process::ExitCode;
use std::{env, fs};

use fiber_bench::options::{self, Asked, Options};
use fiber_bench::race::{self, Contestant};
use fiber_bench::report::{self, Result as Measured};
use fiber_bench::{plot, rows};

/// With fewer repetitions a median says little.
const ENOUGH_REPS: usize = 5;

fn main() -> ExitCode {
    let ended = match options::read(env::args().skip(1)) {
        Ok(Asked::Print(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Measure(options)) => work(&options),
        Err(error) => Err(error),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("peers: {error}");
        ExitCode::from(2)
    })
}

fn work(options: &Options) -> Result<ExitCode, String> {
    let contestants: Vec<Contestant> =
        options.contestants.iter().map(Contestant::ask).collect::<Result<_, _>>()?;
    let cpus = race::cpus().map_err(|e| e.to_string())?;
    // Before the work: a place that cannot be written to is not found out after minutes of it.
    for path in options.json.iter().chain([&options.plot]) {
        write(path, "")?;
    }
    let names: Vec<&str> = contestants.iter().map(|racer| racer.name.as_str()).collect();
    print!("{}\n{}", about(options, &cpus)?, report::heading(&names));
    let mut results = Vec::new();
    for row in &options.rows {
        for workers in &options.workers {
            let runs =
                race::race(&contestants, row, *workers, &cpus, options.reps, options.is_quick)?;
            let result = Measured::new(row, *workers, names[0], &runs);
            print!("{}", report::line(&names, &result));
            results.push(result);
        }
    }
    print!("\n{}", report::notes(&contestants, &options.rows));
    if let Some(path) = &options.json {
        write(path, &report::json_lines(&results))?;
        println!("figures: {}", path.display());
    }
    write(&options.plot, &plot::svg(&names, &results))?;
    println!("plot:    {}", options.plot.display());
    let lost: Vec<String> = results
        .iter()
        .filter(|result| result.is_lost())
        .map(|result| format!("{} ({})", result.row.name, result.workers))
        .collect();
    println!("{} of {} rows won", results.len() - lost.len(), results.len());
    if !lost.is_empty() {
        println!("LOST: {}", lost.join(", "));
    }
    let is_red = options.is_gate && !lost.is_empty();
    Ok(if is_red { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is measured, how it was built, and where.
fn about(options: &Options, cpus: &[usize]) -> Result<String, String> {
    let mut out = format!(
        "{} rows, {} repetitions, CPU time of the whole process per operation\n",
        options.rows.len(),
        options.reps
    );
    for flag in &options.flags {
        out += &format!("{flag}\n");
    }
    if let Some(path) = &options.cargo_lock {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        out += &format!("crates: {}\n", versions(&text).join(", "));
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    out += &format!("machine: {} CPUs allowed, load {load}\n", cpus.len());
    let most = options.workers.iter().copied().max().unwrap_or(1);
    if most > cpus.len() {
        out += &format!("note: {most} workers share {} CPUs here\n", cpus.len());
    }
    if options.is_quick {
        out += &format!("note: {} operations a run measure nothing\n", rows::QUICK);
    } else if options.reps < ENOUGH_REPS {
        out += &format!("note: fewer than {ENOUGH_REPS} repetitions are a look\n");
    }
    Ok(out)
}

/// The peers' versions out of a Cargo.lock.
fn versions(lock: &str) -> Vec<String> {
    let of = |name: &&str| {
        let at = lock.find(&format!("name = \"{name}\"\nversion = \""))?;
        let version = lock[at..].split('"').nth(3)?;
        Some(format!("{name} {version}"))
    };
    ["tokio", "may", "crossbeam-channel"].iter().filter_map(of).collect()
}

fn write(path: &std::path::Path, text: &str) -> Result<(), String> {
    let place = path.display();
    fs::write(path, text)
        .map_err(|e| format!("{place}: {e}; name a file in a folder that is there"))
}
