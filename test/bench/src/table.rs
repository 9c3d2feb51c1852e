//! The figures for people.

use crate::bars::BARS;
use crate::{Accepted, Figure};

/// A table of a run: each figure beside its bar and what was accepted.
pub fn table(figures: &[Figure], accepted: &Accepted, lock: &str) -> String {
    let mut out = String::new();
    if let Some(figure) = figures.first() {
        out += &format!("Guest instructions per operation: {}\n\n", figure.configuration);
    }
    let mut row = |cells: [&str; 6], what: &str| {
        let [name, min, median, accepted, bar, n] = cells;
        out += &format!("{name:<20}{min:>8}{median:>8}{accepted:>10}{bar:>7}{n:>7}  {what}\n");
    };
    row(["", "min", "median", "accepted", "bar", "n"], "");
    let counts = accepted.of(lock);
    for figure in figures {
        let bar = BARS.iter().find(|bar| bar.name == figure.name);
        let count = counts.and_then(|counts| counts.get(&figure.name));
        let or_dash = |value: Option<u64>| value.map_or("-".to_owned(), |v| v.to_string());
        let cells = [
            figure.name.as_str(),
            &figure.min.to_string(),
            &figure.median.to_string(),
            &or_dash(count.map(|count| count.median)),
            &or_dash(bar.and_then(|bar| bar.most)),
            &figure.n.to_string(),
        ];
        let missed = bar.is_some_and(|bar| bar.most.is_some_and(|most| figure.median > most));
        let what = bar.map_or("", |bar| bar.what);
        if missed {
            row(cells, &format!("{what} (above the bar)"));
        } else {
            row(cells, what);
        }
    }
    out
}
