//! `docs/book/decisions.md` lists every decision once, by its title; `SUMMARY.md` every page.

use crate::decisions::Decisions;
use crate::tree::Tree;

pub(crate) const INDEX: &str = "docs/book/decisions.md";
const SUMMARY: &str = "docs/book/SUMMARY.md";

pub(crate) fn problems(tree: &Tree, decisions: &Decisions) -> Vec<String> {
    let mut problems = Vec::new();
    let index = tree.text(INDEX).unwrap_or_default();
    for (number, decision) in decisions {
        let file = decision.path.trim_start_matches("docs/");
        let line = format!("- [{number}. {}](../{file})", decision.title);
        match index.lines().filter(|written| written.contains(file)).count() {
            1 if index.lines().any(|written| written.starts_with(&line)) => {}
            1 => problems
                .push(format!("{INDEX}: the line of {} does not begin `{line}`", decision.path)),
            0 => problems
                .push(format!("{INDEX}: {} is missing; under its area: `{line}`", decision.path)),
            _ => problems.push(format!("{INDEX}: {} is listed more than once", decision.path)),
        }
    }
    let summary = tree.text(SUMMARY).unwrap_or_default();
    for (path, _) in tree.files() {
        let Some(page) = path.strip_prefix("docs/book/").filter(|page| page.ends_with(".md"))
        else {
            continue;
        };
        if path != SUMMARY && !summary.contains(&format!("]({page})")) {
            problems.push(format!("{SUMMARY}: {path} is missing"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{only_problem, sound};

    const TICKETS: &str = "- [7. Spinlock: tickets](../adr/0007-spinlock-tickets.md)\n";
    const UNFAIR: &str = "- [3. Spinlock: unfair](../adr/0003-spinlock.md)\n";

    #[test]
    fn a_page_that_is_not_listed_is_named() {
        let mut tree = sound();
        tree.put(INDEX, TICKETS);
        assert!(only_problem(&tree).contains("docs/adr/0003-spinlock.md is missing"));
    }

    #[test]
    fn a_page_is_listed_once() {
        let mut tree = sound();
        tree.put(INDEX, &[TICKETS, UNFAIR, TICKETS].concat());
        assert!(only_problem(&tree).contains("more than once"));
    }

    #[test]
    fn the_index_says_the_title() {
        let mut tree = sound();
        tree.put(INDEX, &[&TICKETS.replace("tickets]", "fair]"), UNFAIR].concat());
        assert!(only_problem(&tree).contains("does not begin `- [7. Spinlock: tickets]"));
    }

    #[test]
    fn a_page_of_the_book_is_in_the_summary() {
        let mut tree = sound();
        tree.put("docs/book/call.md", "# A call\n");
        assert_eq!(only_problem(&tree), "docs/book/SUMMARY.md: docs/book/call.md is missing");
    }
}
