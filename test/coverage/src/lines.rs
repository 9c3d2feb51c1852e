//! Which lines of which files were reached: LLVM's answer and the sources, as counts and a list.
//!
//! A line counts if LLVM has a counter for it. Lines of a file's own tests do not: code that runs
//! only to test says nothing about what is tested.

use std::collections::BTreeMap;
use std::fmt::Write;

/// The lines of a file that have counters, and how often each was reached.
pub type Lines = BTreeMap<u32, u64>;

/// One file that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path in the workspace.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// What came of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// A table, and what was not reached.
    pub text: String,
    /// Whether enough was.
    pub is_enough: bool,
}

/// Reads a tracefile (lcov(1), geninfo(1)): `SF` names a file, `DA` is a line and its count.
pub fn read(tracefile: &str) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    let mut path = String::new();
    for record in tracefile.lines() {
        if let Some(name) = record.strip_prefix("SF:") {
            path = name.trim_start_matches("./").to_owned();
        } else if let Some(data) = record.strip_prefix("DA:") {
            let mut numbers = data.split(',').map(str::parse::<u64>);
            if let (Some(Ok(line)), Some(Ok(count))) = (numbers.next(), numbers.next())
                && let Ok(line) = u32::try_from(line)
            {
                *files.entry(path.clone()).or_default().entry(line).or_default() += count;
            }
        }
    }
    files
}

/// The first line of a file's own tests, which stand at its end.
fn first_of_tests(text: &str) -> u32 {
    let place = text.lines().position(|line| line.trim_end() == "#[cfg(test)]");
    place.map_or(u32::MAX, |place| place as u32 + 1)
}

/// Judges a crate by how many of all its lines were reached.
///
/// A file without a single counted line, such as one of declarations, has nothing to reach; if that
/// is true of all, nothing was measured, which is a failure.
pub fn judge(
    of: &str,
    files: &[File],
    counts: &BTreeMap<String, Lines>,
    least_percent: u32,
) -> Verdict {
    let (mut reached, mut all) = (0_u64, 0_u64);
    let (mut table, mut list) = (String::new(), String::new());
    let widest = files.iter().map(|file| file.path.len()).max().unwrap_or(0).max(of.len());
    for file in files {
        let tests = first_of_tests(&file.text);
        let empty = Lines::new();
        let lines = counts.get(&file.path).unwrap_or(&empty);
        let lines = || lines.iter().filter(|(line, _)| **line < tests);
        let of_file = lines().count() as u64;
        let missed: Vec<u32> = lines().filter(|(_, n)| **n == 0).map(|(line, _)| *line).collect();
        let reached_here = of_file - missed.len() as u64;
        (reached, all) = (reached + reached_here, all + of_file);
        let share = percent(reached_here, of_file);
        let _ =
            writeln!(table, "{:widest$} {share:>7} {reached_here:>5} of {of_file:>5}", file.path);
        let text: Vec<&str> = file.text.lines().collect();
        for line in missed {
            let source = text.get(line as usize - 1).copied().unwrap_or_default();
            let _ = writeln!(list, "{}:{line}: {}", file.path, source.trim());
        }
    }
    let share = percent(reached, all);
    let _ = writeln!(table, "{:widest$} {share:>7} {reached:>5} of {all:>5}", of);
    let is_enough = all > 0 && reached * 100 >= all * u64::from(least_percent);
    let mut text = String::new();
    if !list.is_empty() {
        let _ = writeln!(text, "lines of {of} that nobody reached:\n{list}");
    }
    text.push_str(&table);
    if all == 0 {
        text.push_str("no line was counted: the programs do not hold these files\n");
    } else if !is_enough {
        let _ =
            writeln!(text, "fewer than {least_percent} %: tests are missing for the lines above");
    }
    Verdict { text, is_enough }
}

/// A share with one decimal, cut off and not rounded, so that 100 % means all.
fn percent(part: u64, whole: u64) -> String {
    match (part * 1000).checked_div(whole) {
        Some(share) => format!("{}.{} %", share / 10, share % 10),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "SF:./a.rs\nFN:1,f\nDA:1,3\nDA:2,0\nend_of_record\n\
                         SF:b.rs\nDA:1,0\nDA:9,0\nDA:10,7\nend_of_record\nSF:a.rs\nDA:2,0\nDA:1,1\n";

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_tracefile_is_lines_with_counts() {
        let files = read(TRACE);
        assert_eq!(files["a.rs"], Lines::from([(1, 4), (2, 0)]));
        assert_eq!(files["b.rs"], Lines::from([(1, 0), (9, 0), (10, 7)]));
        assert!(read("nonsense\nDA:x,y\nDA:1\n").is_empty());
    }

    #[test]
    fn what_was_not_reached_is_listed_with_its_text() {
        let files = [file("a.rs", "one\n    two\n"), file("c.rs", "mod x;\n")];
        let verdict = judge("all", &files, &read(TRACE), 50);
        assert!(verdict.is_enough);
        let expected = "lines of all that nobody reached:\na.rs:2: two\n\n\
                        a.rs  50.0 %     1 of     2\nc.rs       -     0 of     0\nall   50.0 %     1 of     2\n";
        assert_eq!(verdict.text, expected);
        let verdict = judge("all", &files, &read(TRACE), 51);
        assert!(!verdict.is_enough && verdict.text.contains("fewer than 51 %"), "{}", verdict.text);
    }

    #[test]
    fn a_files_own_tests_do_not_count() {
        let text = "x\n\n\n\n\n\n\n#[cfg(test)]\nmod tests {\n}\n";
        let verdict = judge("all", &[file("b.rs", text)], &read(TRACE), 1);
        assert!(!verdict.is_enough && verdict.text.contains("0 of     1"), "{}", verdict.text);
    }

    #[test]
    fn nothing_measured_is_not_enough() {
        let verdict = judge("all", &[file("d.rs", "")], &read(TRACE), 0);
        assert!(!verdict.is_enough && verdict.text.contains("no line was counted"));
    }
}
