//! What the contestants of the fiber benchmark share: the command line, the rows, CPU time.
//!
//! A contestant is a program that does one row once: it sets its runtime up, does a tenth of the
//! work to warm up, then all of it, and prints the CPU time of the whole process for that, with a
//! sum that shows the work was done. Which rows there are, how much to do and what the sum has to be
//! is the driver's business; a contestant that has no idiomatic way to do a row says why.

use std::process::ExitCode;

/// Fibers of a row in which several do the same.
pub const FIBERS: u64 = 4;
/// Sleeping fibers at a time in the row of timers.
pub const SLEEPERS: u64 = 100_000;
/// Places of the large channel.
pub const LARGE: usize = 1024;

/// How a contestant does a row.
pub enum Part {
    /// Does it, and reports through the job.
    Runs(fn(&Job) -> Measured),
    /// Has no idiomatic way to; the reason.
    Lacks(&'static str),
}

/// A measured run.
pub struct Measured {
    cpu_ns: u64,
    sum: u64,
}

/// What to do.
pub struct Job {
    /// Workers of the runtime.
    pub workers: usize,
    count: u64,
}

impl Job {
    /// Runs `body` with a tenth of the count to warm up, then with all of it; it returns its sum.
    pub fn measure(&self, mut body: impl FnMut(u64) -> u64) -> Measured {
        // Rows divide their count by the number of fibers.
        let warm = (self.count / 10).next_multiple_of(FIBERS);
        std::hint::black_box(body(warm));
        let before = cpu_ns();
        let sum = body(self.count);
        Measured { cpu_ns: cpu_ns() - before, sum }
    }
}

/// User and system time of this process until now, all its threads.
pub fn cpu_ns() -> u64 {
    // SAFETY: all zeroes is a value of this plain structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is there to be written to.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    assert_eq!(status, 0, "getrusage of the process itself does not fail");
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

const USAGE: &str = "usage: --list, or --row ROW --workers N --count N (a multiple of 4)";

/// A contestant's main function: `parts` are its rows by name.
pub fn contestant(parts: &[(&str, Part)]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match work(&arguments, parts) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn work(arguments: &[String], parts: &[(&str, Part)]) -> Result<String, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (row, workers, count) = match words[..] {
        ["--list"] => return Ok(list(parts)),
        ["--row", row, "--workers", workers, "--count", count] => (row, workers, count),
        _ => return Err(format!("not understood: {}", arguments.join(" "))),
    };
    let number = |text: &str| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
    let job = Job { workers: number(workers)? as usize, count: number(count)? };
    if job.workers == 0 || job.count == 0 || !job.count.is_multiple_of(FIBERS) {
        return Err(format!("{workers} workers, {count} operations"));
    }
    match parts.iter().find(|(name, _)| *name == row) {
        Some((_, Part::Runs(run))) => {
            let measured = run(&job);
            Ok(format!("cpu_ns {} sum {}\n", measured.cpu_ns, measured.sum))
        }
        Some((_, Part::Lacks(why))) => Err(format!("{row} is left out: {why}")),
        None => Err(format!("there is no row {row}")),
    }
}

/// One line a row: its name, and after a tab why it is left out.
fn list(parts: &[(&str, Part)]) -> String {
    let line = |(name, part): &(&str, Part)| match part {
        Part::Runs(_) => format!("{name}\n"),
        Part::Lacks(why) => format!("{name}\t{why}\n"),
    };
    parts.iter().map(line).collect()
}
