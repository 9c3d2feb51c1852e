//! The rows of the table: what is done, how often, and what the sum has to be.

/// One row.
pub struct Row {
    pub name: &'static str,
    /// What one operation is.
    pub what: &'static str,
    /// The most operations of a run. A contestant that is slow does fewer.
    pub most: u64,
    /// Whether every contestant does exactly that many.
    pub is_fixed: bool,
    /// The sum a run of so many operations has to end with.
    pub sum: fn(u64) -> u64,
}

/// Operations of a quick run, which shows that everything works and measures nothing.
pub const QUICK: u64 = 400;

fn below(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

/// Round trips: each number comes back one larger.
fn answered(count: u64) -> u64 {
    below(count) + count
}

/// Four senders, each with the same numbers.
fn four_times(count: u64) -> u64 {
    4 * below(count / 4)
}

fn counted(count: u64) -> u64 {
    count
}

/// All of them, in the order of the table.
pub const ROWS: [Row; 10] = [
    row("spawn_join", "spawn a fiber and join it", 1_000_000, below),
    row("yield", "yield, four fibers in turn", 4_000_000, counted),
    row("unbuffered", "round trip over two unbuffered channels", 1_000_000, answered),
    row("bounded1", "round trip over two channels of one place", 1_000_000, answered),
    row("bounded1024_1to1", "a message through 1024 places, 1 to 1", 4_000_000, below),
    row("bounded1024_4to4", "a message through 1024 places, 4 to 4", 4_000_000, four_times),
    row("select4", "receive by a select over four channels of one place", 1_000_000, four_times),
    row("mutex", "lock, yield, unlock; four fibers", 1_000_000, counted),
    row("oneshot", "request with a one-shot answer", 1_000_000, answered),
    Row {
        name: "timer_1ms",
        what: "sleep 1 ms, a hundred thousand at once",
        most: 1_000_000,
        is_fixed: true,
        sum: counted,
    },
];

const fn row(name: &'static str, what: &'static str, most: u64, sum: fn(u64) -> u64) -> Row {
    Row { name, what, most, is_fixed: false, sum }
}

/// The rows with these names, or what is wrong with a name.
pub fn chosen(names: &[String]) -> Result<Vec<&'static Row>, String> {
    let known = || ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(",");
    for name in names {
        if !ROWS.iter().any(|row| row.name == name) {
            return Err(format!("there is no row '{name}'; the rows are {}", known()));
        }
    }
    Ok(ROWS.iter().filter(|row| names.is_empty() || names.iter().any(|n| n == row.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_loops() {
        assert_eq!(below(5), 1 + 2 + 3 + 4);
        assert_eq!(answered(3), 1 + 2 + 3);
        assert_eq!(four_times(12), 4 * 3);
        assert_eq!(below(0), 0);
    }

    #[test]
    fn every_count_can_be_shared_among_four() {
        for row in &ROWS {
            assert_eq!(row.most % 4, 0, "{}", row.name);
        }
        assert_eq!(QUICK % 4, 0);
    }

    #[test]
    fn an_unknown_row_is_answered_with_the_known_ones() {
        let error = chosen(&["yeild".to_owned()]).err().unwrap();
        assert!(error.contains("'yeild'") && error.contains("spawn_join,yield,"), "{error}");
        assert_eq!(chosen(&[]).unwrap().len(), ROWS.len());
        assert_eq!(chosen(&["yield".to_owned()]).unwrap()[0].name, "yield");
    }
}
