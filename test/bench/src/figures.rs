//! What a run measured, read from the harness's `metrics.jsonl`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bars::BARS;

/// One measurement of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// As in [`BARS`].
    pub name: String,
    /// Instructions of the cheapest sample, per operation.
    pub min: u64,
    /// Instructions of the middle sample, per operation.
    pub median: u64,
    /// Operations measured.
    pub n: u64,
    /// Image, lane and CPUs.
    pub configuration: String,
}

/// What tests of the benchmark are called before their name.
const PREFIX: &str = "bench.";

/// The figures of a run, in the order of [`BARS`]. Every one must be there, once and whole.
pub fn read(metrics: &str) -> Result<Vec<Figure>, String> {
    let mut values: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut configuration = None;
    for line in metrics.lines() {
        let value: Value = serde_json::from_str(line).map_err(|e| format!("{line}: {e}"))?;
        let text = |key: &str| value[key].as_str().ok_or(format!("{line}: no {key}"));
        let Some(test) = text("test")?.strip_prefix(PREFIX) else { continue };
        let figure = value["value"].as_u64().ok_or(format!("{line}: no value"))?;
        let key = (test.to_owned(), text("name")?.to_owned());
        if values.insert(key, figure).is_some() {
            return Err(format!("{line}: measured twice"));
        }
        let cpus = value["cpus"].as_u64().ok_or(format!("{line}: no cpus"))?;
        let of = format!("{} image, {} lane, {cpus} CPU", text("profile")?, text("lane")?);
        if configuration.get_or_insert_with(|| of.clone()) != &of {
            return Err(format!("{line}: another configuration than the lines before"));
        }
    }
    let configuration = configuration.ok_or("the run measured nothing")?;
    let mut figures = Vec::new();
    for bar in &BARS {
        let mut take = |what: &str| {
            let key = (bar.name.to_owned(), what.to_owned());
            values.remove(&key).ok_or(format!("{} has no {what}", bar.name))
        };
        let (min, median, n) = (take("min")?, take("median")?, take("n")?);
        if min == 0 || min > median || n == 0 {
            return Err(format!("{}: min {min}, median {median}, n {n} cannot be", bar.name));
        }
        let configuration = configuration.clone();
        figures.push(Figure { name: bar.name.into(), min, median, n, configuration });
    }
    match values.keys().next() {
        Some((test, name)) => Err(format!("{test}: {name} is not among the measurements")),
        None => Ok(figures),
    }
}

/// One JSON object a figure, a line each.
pub fn json_lines(figures: &[Figure]) -> String {
    let line = |f: &Figure| {
        let value = json!({
            "name": f.name,
            "unit": "insns",
            "min": f.min,
            "median": f.median,
            "n": f.n,
            "configuration": f.configuration,
        });
        format!("{value}\n")
    };
    figures.iter().map(line).collect()
}
