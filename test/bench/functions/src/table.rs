//! An operation's instructions for people: Markdown, most first within each program.

use crate::rounds::Place;

/// The table of one operation.
pub fn table(name: &str, mut places: Vec<(Place, u64)>) -> String {
    let total: u64 = places.iter().map(|(_, count)| count).sum();
    let of = |program: &str, places: &[(Place, u64)]| -> u64 {
        places.iter().filter(|(place, _)| place.program == program).map(|(_, n)| n).sum()
    };
    let mut programs: Vec<(String, u64)> = Vec::new();
    for (place, _) in &places {
        if !programs.iter().any(|(program, _)| *program == place.program) {
            programs.push((place.program.clone(), of(&place.program, &places)));
        }
    }
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut out = format!("| {name} | instructions |\n|---|---|\n");
    for (program, sum) in &programs {
        out += &format!("| **{program}** | **{sum}** |\n");
        for (place, count) in places.iter().filter(|(place, _)| place.program == *program) {
            out += &format!("| `{}` | {count} |\n", place.function.replace('|', "\\|"));
        }
    }
    out + &format!("| **sum** | **{total}** |\n")
}
