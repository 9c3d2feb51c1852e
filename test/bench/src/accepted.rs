//! The counts that were accepted, by the tool chain they were measured with.
//!
//! Another compiler makes other code and another emulator other counts, so a lock has its own.
//! The file is JSON, made by `--accept` and read by people in a diff:
//!
//! ```json
//! { "c9e9…": { "null_entry": { "median": 120, "min": 118 } } }
//! ```
//!
//! Decided in ADR 83.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Figure;

/// An accepted figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Instructions of the cheapest sample.
    pub min: u64,
    /// Instructions of the middle sample.
    pub median: u64,
}

/// All accepted counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    by_lock: BTreeMap<String, BTreeMap<String, Count>>,
}

impl Accepted {
    /// Reads the file.
    pub fn read(text: &str) -> Result<Self, String> {
        let all: BTreeMap<String, BTreeMap<String, Value>> = match serde_json::from_str(text) {
            Ok(Value::Object(locks)) => locks
                .into_iter()
                .map(|(lock, counts)| match counts {
                    Value::Object(counts) => Ok((lock, counts.into_iter().collect())),
                    other => Err(format!("{lock}: {other} is not an object of counts")),
                })
                .collect::<Result<_, _>>()?,
            Ok(other) => return Err(format!("{other} is not an object of tool chains")),
            Err(error) => return Err(error.to_string()),
        };
        let count = |name: &str, value: &Value| {
            let field = |key: &str| value[key].as_u64().ok_or(format!("{name} has no {key}"));
            Ok::<_, String>(Count { min: field("min")?, median: field("median")? })
        };
        let mut by_lock = BTreeMap::new();
        for (lock, counts) in all {
            let counts = counts
                .iter()
                .map(|(name, value)| Ok((name.clone(), count(name, value)?)))
                .collect::<Result<_, String>>()?;
            by_lock.insert(lock, counts);
        }
        Ok(Self { by_lock })
    }

    /// The counts of a tool chain.
    pub fn of(&self, lock: &str) -> Option<&BTreeMap<String, Count>> {
        self.by_lock.get(lock)
    }

    /// Accepts a run: its counts are the tool chain's from now on. Counts of other tool chains
    /// stay, so that going back is no change.
    pub fn accept(&mut self, lock: &str, figures: &[Figure]) {
        let counts = figures
            .iter()
            .map(|f| (f.name.clone(), Count { min: f.min, median: f.median }))
            .collect();
        self.by_lock.insert(lock.to_owned(), counts);
    }

    /// The file.
    pub fn write(&self) -> String {
        let locks: Map<String, Value> = self
            .by_lock
            .iter()
            .map(|(lock, counts)| {
                let counts: Map<String, Value> = counts
                    .iter()
                    .map(|(name, c)| (name.clone(), json!({"min": c.min, "median": c.median})))
                    .collect();
                (lock.clone(), Value::Object(counts))
            })
            .collect();
        format!("{:#}\n", Value::Object(locks))
    }
}
