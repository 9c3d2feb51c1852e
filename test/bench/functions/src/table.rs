//! An operation's instructions for people: Markdown, most first within each program.

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Functions with fewer instructions share a row.
const LEAST: u64 = 4;

/// The table of one operation, from instructions by program and function.
pub fn table(name: &str, counts: &BTreeMap<(String, String), u64>) -> String {
    let mut programs: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
    for ((program, function), count) in counts {
        programs.entry(program).or_default().push((function, *count));
    }
    let sum = |functions: &[(&str, u64)]| functions.iter().map(|(_, count)| count).sum::<u64>();
    let mut programs: Vec<_> = programs.into_iter().collect();
    programs.sort_by_key(|(_, functions)| Reverse(sum(functions)));
    let mut out = format!("| {name} | instructions |\n|---|---|\n");
    let mut total = 0;
    for (program, mut functions) in programs {
        out += &format!("| **{program}** | **{}** |\n", sum(&functions));
        total += sum(&functions);
        functions.sort_by_key(|(function, count)| (Reverse(*count), *function));
        let (rows, few): (Vec<_>, Vec<_>) =
            functions.into_iter().partition(|(_, count)| *count >= LEAST);
        for (function, count) in rows {
            out += &format!("| `{}` | {count} |\n", function.replace('|', "\\|"));
        }
        if !few.is_empty() {
            out += &format!("| {} others | {} |\n", few.len(), sum(&few));
        }
    }
    out + &format!("| **sum** | **{total}** |\n")
}
