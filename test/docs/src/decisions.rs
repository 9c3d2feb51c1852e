//! The pages of `docs/adr`: number, title, status.

use std::collections::BTreeMap;

use crate::tree::Tree;

pub(crate) const FOLDER: &str = "docs/adr/";

/// What a page says of itself in its first three lines.
pub(crate) struct Decision {
    pub(crate) path: String,
    pub(crate) title: String,
    pub(crate) successor: Option<u32>,
}

/// By number.
pub(crate) type Decisions = BTreeMap<u32, Decision>;

/// The pages that can be read, and what is wrong with the others.
pub(crate) fn read(tree: &Tree) -> (Decisions, Vec<String>) {
    let mut decisions = Decisions::new();
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.starts_with(FOLDER)) {
        match page(path, text) {
            Ok((number, decision)) => {
                if let Some(other) = decisions.insert(number, decision) {
                    problems.push(format!(
                        "{path}: number {number} is that of {}; take the next free one",
                        other.path
                    ));
                }
            }
            Err(problem) => problems.push(format!("{path}: {problem}")),
        }
    }
    for (number, decision) in &decisions {
        if let Some(problem) = decision
            .successor
            .and_then(|successor| succession(tree, &decisions, *number, successor))
        {
            problems.push(format!("{}: {problem}", decision.path));
        }
    }
    (decisions, problems)
}

fn page(path: &str, text: &str) -> Result<(u32, Decision), String> {
    let name = path.trim_start_matches(FOLDER).trim_end_matches(".md");
    let (digits, slug) = name.split_once('-').ok_or("a page is called NNNN-title.md")?;
    let number: u32 = digits.parse().map_err(|_| "a page is called NNNN-title.md")?;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let title = head
        .strip_prefix(&format!("# {number}. "))
        .ok_or(format!("the first line is `# {number}. Term: decision`, not `{head}`"))?;
    let (term, _) = title
        .split_once(": ")
        .ok_or(format!("`{title}` has no term; the title is `Term: decision`"))?;
    let first = term.split([' ', '-']).next().unwrap_or_default().to_lowercase();
    if slug.split('-').next() != Some(first.as_str()) {
        return Err(format!(
            "the file's name begins with the title's first word, `{digits}-{first}…`"
        ));
    }
    let status = text.lines().nth(2).unwrap_or_default();
    let status = status
        .strip_prefix("Status: ")
        .ok_or("the third line is the status: `Status: accepted` or `Status: superseded by N`")?;
    let successor = match status.strip_prefix("superseded by ") {
        Some(number) => {
            Some(number.parse().map_err(|_| format!("`{number}` is no decision's number"))?)
        }
        None if status == "accepted" => None,
        None => {
            return Err(format!("`{status}` is no status; say `accepted` or `superseded by N`"));
        }
    };
    Ok((number, Decision { path: path.to_string(), title: title.to_string(), successor }))
}

/// What is wrong with `number` being superseded by `successor`.
fn succession(tree: &Tree, decisions: &Decisions, number: u32, successor: u32) -> Option<String> {
    let Some(page) = decisions.get(&successor) else {
        return Some(format!("superseded by {successor}, which does not exist"));
    };
    let mut last = successor;
    for _ in 0..decisions.len() {
        match decisions.get(&last).and_then(|decision| decision.successor) {
            Some(next) => last = next,
            None => {
                let cites = crate::citations::numbers(tree.text(&page.path).unwrap_or_default())
                    .any(|n| n == number);
                return (!cites).then(|| {
                    format!("superseded by {successor}, whose page does not say `ADR {number}`")
                });
            }
        }
    }
    Some(format!("superseded by {successor}, and that in the end by {number}"))
}

#[cfg(test)]
mod tests {
    use crate::tree::{only_problem, sound};

    const PAGE: &str = "docs/adr/0007-spinlock-tickets.md";

    #[test]
    fn a_page_without_status_is_refused() {
        let mut tree = sound();
        tree.put(PAGE, "# 7. Spinlock: tickets\n\nAs ADR 3 no more.\n");
        assert!(crate::problems(&tree)[0].contains("the third line is the status"));
    }

    #[test]
    fn a_status_is_one_of_two() {
        let mut tree = sound();
        tree.put(PAGE, "# 7. Spinlock: tickets\n\nStatus: maybe\n");
        assert!(crate::problems(&tree)[0].contains("`maybe` is no status"));
    }

    #[test]
    fn a_title_has_a_term_and_the_name_begins_with_it() {
        let mut tree = sound();
        tree.put(PAGE, "# 7. Tickets are fair\n\nStatus: accepted\n");
        assert!(crate::problems(&tree)[0].contains("has no term"));
        tree.put(PAGE, "# 7. Lock: tickets\n\nStatus: accepted\n");
        assert!(crate::problems(&tree)[0].contains("`0007-lock…`"));
    }

    #[test]
    fn the_number_is_that_of_the_file() {
        let mut tree = sound();
        tree.put(PAGE, "# 8. Spinlock: tickets\n\nStatus: accepted\n");
        assert!(crate::problems(&tree)[0].contains("`# 7. Term: decision`"));
    }

    #[test]
    fn a_successor_exists_and_names_what_it_supersedes() {
        let mut tree = sound();
        tree.put("docs/adr/0003-spinlock.md", "# 3. Spinlock: unfair\n\nStatus: superseded by 9\n");
        assert_eq!(
            only_problem(&tree),
            "docs/adr/0003-spinlock.md: superseded by 9, which does not exist"
        );
        let mut tree = sound();
        tree.put(PAGE, "# 7. Spinlock: tickets\n\nStatus: accepted\n");
        assert!(only_problem(&tree).ends_with("whose page does not say `ADR 3`"));
    }

    #[test]
    fn two_pages_do_not_supersede_each_other() {
        let mut tree = sound();
        tree.put(PAGE, "# 7. Spinlock: tickets\n\nStatus: superseded by 3\n");
        assert!(crate::problems(&tree).iter().any(|problem| problem.contains("in the end by")));
    }

    #[test]
    fn a_number_is_used_once() {
        let mut tree = sound();
        tree.put("docs/adr/0007-lock.md", "# 7. Lock: none\n\nStatus: accepted\n");
        assert!(
            crate::problems(&tree).iter().any(|problem| problem.contains("take the next free one"))
        );
    }
}
