//! `ADR 7` in code and pages: each names a decision that holds, and each decision is named.

use crate::decisions::{Decisions, FOLDER};
use crate::index::INDEX;
use crate::tree::Tree;

/// The texts that show citations as they must not be.
const OWN: &str = "test/docs/";

/// The numbers a text cites, `ADR 7` and `ADRs 7, 8 and 9` alike.
pub(crate) fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.match_indices("ADR").flat_map(|(at, _)| after(&text[at + 3..]))
}

fn after(text: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    let Some(mut rest) = text.strip_prefix('s').unwrap_or(text).strip_prefix(' ') else {
        return numbers;
    };
    loop {
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..length].parse() else { return numbers };
        numbers.push(number);
        rest = &rest[length..];
        match [", ", " and "].iter().find_map(|between| rest.strip_prefix(between)) {
            Some(next) => rest = next,
            None => return numbers,
        }
    }
}

pub(crate) fn problems(tree: &Tree, decisions: &Decisions) -> Vec<String> {
    let mut problems = Vec::new();
    let mut cited = std::collections::BTreeSet::new();
    for (path, text) in tree.files().filter(|(path, _)| !path.starts_with(OWN)) {
        for number in numbers(text) {
            match decisions.get(&number) {
                None => problems.push(format!("{path}: ADR {number} does not exist")),
                Some(decision) => {
                    let is_page = path.ends_with(".md");
                    if let (Some(successor), false) = (decision.successor, is_page) {
                        problems.push(format!(
                            "{path}: ADR {number} is superseded; what holds is ADR {successor}"
                        ));
                    }
                    if !path.starts_with(FOLDER) && path != INDEX {
                        cited.insert(number);
                    }
                }
            }
        }
    }
    for (number, decision) in decisions {
        if decision.successor.is_none() && !cited.contains(number) {
            problems.push(format!(
                "{}: nothing cites it; say `ADR {number}` where the code does what it decides, or in a page of the book",
                decision.path
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{only_problem, sound};

    #[test]
    fn lists_of_numbers_are_read() {
        let text = "ADR 7, then ADRs 8, 9 and 10; ADR, ADR x and ADR-11 are none (ADR 12).";
        assert_eq!(numbers(text).collect::<Vec<_>>(), [7, 8, 9, 10, 12]);
    }

    #[test]
    fn a_citation_of_nothing_is_refused() {
        let mut tree = sound();
        tree.put("kernel/mm/src/lib.rs", "// ADR 8\n");
        assert_eq!(only_problem(&tree), "kernel/mm/src/lib.rs: ADR 8 does not exist");
    }

    #[test]
    fn code_does_not_rely_on_a_superseded_decision() {
        let mut tree = sound();
        tree.put("kernel/mm/src/lib.rs", "// ADR 3\n");
        assert_eq!(
            only_problem(&tree),
            "kernel/mm/src/lib.rs: ADR 3 is superseded; what holds is ADR 7"
        );
    }

    #[test]
    fn a_decision_that_nothing_cites_is_named() {
        let mut tree = sound();
        tree.put("kernel/smp/lock/src/lib.rs", "//! A lock.\n");
        assert!(
            only_problem(&tree).starts_with("docs/adr/0007-spinlock-tickets.md: nothing cites it")
        );
    }

    #[test]
    fn neither_the_index_nor_another_decision_counts_as_a_citation() {
        let mut tree = sound();
        tree.put("kernel/smp/lock/src/lib.rs", "//! A lock.\n");
        let index = tree.text(INDEX).unwrap_or_default().to_string();
        tree.put(INDEX, &(index + "ADR 7\n"));
        assert!(only_problem(&tree).contains("nothing cites it"));
    }
}
