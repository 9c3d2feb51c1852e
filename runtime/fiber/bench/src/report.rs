//! What comes out: the table, its notes, and JSON lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::race::{Contestant, median};
use crate::rows::Row;

/// A row with so many workers, measured.
pub struct Result {
    pub row: &'static Row,
    pub workers: usize,
    pub ours_ns: f64,
    /// By name, only those that do the row.
    pub peers: BTreeMap<String, f64>,
    /// The least and the largest of our own runs, in parts of the median.
    pub spread: (f64, f64),
}

impl Result {
    /// From the runs of each contestant; `ours` is the name of the one that is compared.
    pub fn new(
        row: &'static Row,
        workers: usize,
        ours: &str,
        runs: &BTreeMap<String, Vec<f64>>,
    ) -> Self {
        let of = |name: &str| runs.get(name).map_or(&[][..], Vec::as_slice);
        let ours_ns = median(of(ours));
        let least = of(ours).iter().copied().fold(f64::INFINITY, f64::min);
        let most = of(ours).iter().copied().fold(0.0, f64::max);
        let peers = runs.iter().filter(|(name, _)| *name != ours);
        Self {
            row,
            workers,
            ours_ns,
            peers: peers.map(|(name, runs)| (name.clone(), median(runs))).collect(),
            spread: (least / ours_ns, most / ours_ns),
        }
    }

    /// Ours in parts of the best peer's; `None` if no peer does the row.
    pub fn ratio(&self) -> Option<f64> {
        self.peers.values().copied().min_by(f64::total_cmp).map(|best| self.ours_ns / best)
    }

    /// Whether a peer is as good or better.
    pub fn is_lost(&self) -> bool {
        self.ratio().is_some_and(|ratio| ratio >= 1.0)
    }
}

/// One JSON object a line.
pub fn json_lines(results: &[Result]) -> String {
    let line = |result: &Result| {
        let value = json!({
            "row": result.row.name,
            "workers": result.workers,
            "ours_ns": round(result.ours_ns),
            "peers": result.peers.iter().map(|(name, ns)| (name.clone(), json!(round(*ns))))
                .collect::<serde_json::Map<_, _>>(),
            "ratio_to_best": result.ratio().map(|ratio| (ratio * 1000.0).round() / 1000.0),
        });
        format!("{value}\n")
    };
    results.iter().map(line).collect()
}

fn round(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// The table's first two lines: ours and the peers in the order of the contestants.
pub fn heading(names: &[&str]) -> String {
    let mut head = format!("| {:<16} | {:>7} |", "ns per operation", "workers");
    let mut rule = "|---|---|".to_owned();
    for name in names {
        let _ = write!(head, " {name:>11} |");
        rule.push_str("---|");
    }
    format!("{head} {:>6} | {:>11} | {:<4} |\n{rule}---|---|---|\n", "ratio", "ours varies", "")
}

/// A result's line of the table.
pub fn line(names: &[&str], result: &Result) -> String {
    let mut out = format!("| {:<16} | {:>7} |", result.row.name, result.workers);
    for (place, name) in names.iter().enumerate() {
        let ns = if place == 0 { Some(&result.ours_ns) } else { result.peers.get(*name) };
        let text = ns.map_or("–".to_owned(), |ns| figure(*ns));
        let _ = write!(out, " {text:>11} |");
    }
    let ratio = result.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let (least, most) = result.spread;
    let spread = format!("{least:.2}–{most:.2}");
    let verdict = if result.is_lost() { "LOST" } else { "" };
    let _ = writeln!(out, " {ratio:>6} | {spread:>11} | {verdict:<4} |");
    out
}

fn figure(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

/// Who leaves out what, and why: one line a reason.
pub fn notes(contestants: &[Contestant], rows: &[&'static Row]) -> String {
    let mut out = String::new();
    for racer in contestants {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in rows {
            if let Some(why) = racer.lacks.get(row.name) {
                reasons.entry(why).or_default().push(row.name);
            }
        }
        for (why, rows) in reasons {
            let _ = writeln!(out, "{} leaves out {}: {why}", racer.name, rows.join(", "));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::ROWS;

    fn result(ours: f64, peers: &[(&str, f64)]) -> Result {
        let mut runs = BTreeMap::from([("ours".to_owned(), vec![ours, ours * 2.0, ours / 2.0])]);
        runs.extend(peers.iter().map(|(name, ns)| ((*name).to_owned(), vec![*ns])));
        Result::new(&ROWS[0], 2, "ours", &runs)
    }

    #[test]
    fn the_best_peer_counts() {
        let won = result(100.0, &[("a", 400.0), ("b", 125.0)]);
        assert_eq!(won.ratio(), Some(0.8));
        assert!(!won.is_lost());
        assert_eq!(won.spread, (0.5, 2.0));
        // As good is not better.
        assert!(result(100.0, &[("a", 100.0), ("b", 500.0)]).is_lost());
        assert!(!result(100.0, &[]).is_lost());
    }

    #[test]
    fn json_has_what_was_promised() {
        let text = json_lines(&[result(100.0, &[("a", 400.0)]), result(1.0, &[])]);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["row"], "spawn_join");
        assert_eq!(lines[0]["workers"], 2);
        assert_eq!(lines[0]["ours_ns"], 100.0);
        assert_eq!(lines[0]["peers"]["a"], 400.0);
        assert_eq!(lines[0]["ratio_to_best"], 0.25);
        assert!(lines[1]["ratio_to_best"].is_null());
    }

    #[test]
    fn lost_rows_are_marked() {
        let lost = line(&["ours", "a"], &result(100.0, &[("a", 50.0)]));
        assert!(lost.contains("LOST") && lost.contains("2.00"), "{lost}");
        let won = line(&["ours", "b", "a"], &result(100.0, &[("a", 150.0)]));
        assert!(!won.contains("LOST") && won.contains("0.67"), "{won}");
        assert_eq!(
            won.matches('|').count(),
            heading(&["ours", "b", "a"]).lines().next().unwrap().matches('|').count()
        );
    }
}
