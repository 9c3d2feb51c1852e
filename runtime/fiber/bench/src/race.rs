//! Runs the contestants: each a process of its own, on the same CPUs, in turn.
//!
//! Decided in ADR 168.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};

use crate::options::Named;
use crate::rows::{QUICK, Row};

/// A run that takes longer has hung.
const LIMIT_SECONDS: &str = "300";
/// CPU time a run should take: so long that the clock's steps do not count.
const RUN_NS: f64 = 150e6;
/// A calibrating run does this part of a row's operations.
const CALIBRATE: u64 = 100;

/// A program that does rows.
pub struct Contestant {
    pub name: String,
    path: PathBuf,
    only_workers: Option<usize>,
    /// Rows it leaves out, and why.
    pub lacks: BTreeMap<String, String>,
}

impl Contestant {
    /// Asks a program what it can do.
    pub fn ask(named: &Named) -> Result<Self, String> {
        let path = named.path.canonicalize();
        let path = path.map_err(|e| format!("{}: {e}", named.path.display()))?;
        let text = answer(Command::new(&path).arg("--list"), &named.name)?;
        let lacks = text.lines().filter_map(|line| line.split_once('\t'));
        let lacks = lacks.map(|(row, why)| (row.to_owned(), why.to_owned())).collect();
        Ok(Self { name: named.name.clone(), path, only_workers: named.only_workers, lacks })
    }

    /// Whether it takes part in a row.
    pub fn does(&self, row: &Row, workers: usize) -> bool {
        !self.lacks.contains_key(row.name) && self.only_workers.is_none_or(|only| only == workers)
    }

    /// One run: nanoseconds of CPU time per operation.
    fn run(&self, row: &Row, workers: usize, cpus: &str, count: u64) -> Result<f64, String> {
        let mut command = Command::new("timeout");
        command.args([LIMIT_SECONDS, "taskset", "-c", cpus]).arg(&self.path);
        command.args(["--row", row.name, "--workers", &workers.to_string()]);
        command.args(["--count", &count.to_string()]);
        let who = format!("{}, {} with {workers} workers", self.name, row.name);
        let text = answer(&mut command, &who)?;
        let (cpu_ns, sum) = parse(&text).ok_or_else(|| format!("{who}: answered '{text}'"))?;
        let right = (row.sum)(count);
        if sum != right {
            return Err(format!("{who}: the sum is {sum} and has to be {right}: work was lost"));
        }
        Ok(cpu_ns as f64 / count as f64)
    }
}

/// What a command prints, if it ends well.
fn answer(command: &mut Command, who: &str) -> Result<String, String> {
    let output = command.output().map_err(|e| format!("{who}: {e}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let words = words.trim();
        return Err(match output.status.code() {
            Some(124) => format!("{who}: did not end within {LIMIT_SECONDS} s"),
            _ => format!("{who}: {}: {words}", output.status),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(text: &str) -> Option<(u64, u64)> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["cpu_ns", cpu_ns, "sum", sum] => Some((cpu_ns.parse().ok()?, sum.parse().ok()?)),
        _ => None,
    }
}

/// How much each contestant does: about the same time, so that none decides how long it all takes.
fn calibrate(
    racers: &[&Contestant],
    row: &Row,
    workers: usize,
    cpus: &str,
    is_quick: bool,
) -> Result<Vec<u64>, String> {
    let count = |racer: &&Contestant| {
        if is_quick || row.is_fixed {
            return Ok(if is_quick { QUICK } else { row.most });
        }
        let first = (row.most / CALIBRATE).next_multiple_of(4);
        let each_ns = racer.run(row, workers, cpus, first)?.max(1.0);
        Ok((RUN_NS / each_ns).clamp(first as f64, row.most as f64) as u64 / 4 * 4)
    };
    racers.iter().map(count).collect()
}

/// Runs a row with so many workers: by contestant, the runs' nanoseconds per operation. A round runs
/// each once; the next begins with another.
pub fn race(
    contestants: &[Contestant],
    row: &Row,
    workers: usize,
    cpus: &[usize],
    reps: usize,
    is_quick: bool,
) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let cpus: Vec<String> = cpus.iter().take(workers).map(usize::to_string).collect();
    let cpus = cpus.join(",");
    let racers: Vec<_> = contestants.iter().filter(|racer| racer.does(row, workers)).collect();
    let counts = calibrate(&racers, row, workers, &cpus, is_quick)?;
    let mut runs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for round in 0..reps {
        for place in 0..racers.len() {
            let place = (place + round) % racers.len();
            let each_ns = racers[place].run(row, workers, &cpus, counts[place])?;
            runs.entry(racers[place].name.clone()).or_default().push(each_ns);
        }
    }
    Ok(runs)
}

/// The middle one.
pub fn median(runs: &[f64]) -> f64 {
    let mut runs = runs.to_vec();
    runs.sort_by(f64::total_cmp);
    let middle = runs.len() / 2;
    match runs.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => runs[middle],
        _ => f64::midpoint(runs[middle - 1], runs[middle]),
    }
}

/// The CPUs this process may run on.
pub fn cpus() -> io::Result<Vec<usize>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.and_then(|list| parse_cpus(list.trim()))
        .ok_or_else(|| io::Error::other("/proc/self/status names no CPUs"))
}

fn parse_cpus(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpus("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpus("7"), Some(vec![7]));
        assert_eq!(parse_cpus("x"), None);
    }

    #[test]
    fn answers() {
        assert_eq!(parse("cpu_ns 12 sum 34\n"), Some((12, 34)));
        assert_eq!(parse("cpu_ns 12"), None);
        assert_eq!(parse("cpu_ns x sum 34"), None);
    }
}
