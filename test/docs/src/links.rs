//! Links between pages: the file is there, the heading too, and a decision's number is its file's.

use crate::tree::Tree;

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for (words, target) in links(text) {
            if let Some(problem) = problem(tree, path, words, target) {
                problems.push(format!("{path}: [{words}]({target}): {problem}"));
            }
        }
    }
    problems
}

/// `[words](target)` outside of code.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if is_code || line.starts_with("    ") {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let words = line[..at].rfind('[').map_or("", |start| &line[start + 1..at]);
            if let Some(length) = line[at + 2..].find(')') {
                found.push((words, &line[at + 2..at + 2 + length]));
            }
        }
    }
    found
}

fn problem(tree: &Tree, path: &str, words: &str, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { path.to_string() } else { joined(path, file) };
    if !tree.has(&file) {
        return Some(format!("there is no {file}"));
    }
    if !heading.is_empty()
        && !tree.text(&file).is_some_and(|text| text.lines().any(|line| anchor(line) == heading))
    {
        return Some(format!("{file} has no heading of that name"));
    }
    let number = words.strip_prefix("ADR ")?;
    let of_file =
        file.strip_prefix(crate::decisions::FOLDER)?.get(..4)?.trim_start_matches('0').to_string();
    (number != of_file).then(|| format!("the page is that of ADR {of_file}"))
}

/// `target` as seen from the folder of `path`.
fn joined(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// What a heading is called in a link; nothing for other lines.
fn anchor(line: &str) -> String {
    let Some(words) = line.strip_prefix('#') else { return String::new() };
    let words = words.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use crate::tree::{only_problem, sound};

    #[test]
    fn a_link_to_nothing_is_refused() {
        let mut tree = sound();
        tree.put("README.md", "See [the lock](kernel/smp/locks/src/lib.rs).\n");
        assert!(only_problem(&tree).ends_with("there is no kernel/smp/locks/src/lib.rs"));
    }

    #[test]
    fn files_folders_headings_and_places_elsewhere_are_found() {
        let mut tree = sound();
        tree.put("docs/a.md", "## To *change* it, now\n[x](../kernel/smp) [y](a.md#to-change-it-now) [z](https://a.b/)\n");
        tree.put("docs/b.md", "```\n[no](link)\n```\n[x](./a.md) [y](#), [s](book/decisions.md)\n");
        assert_eq!(crate::problems(&tree), Vec::<String>::new());
    }

    #[test]
    fn a_heading_that_is_gone_is_named() {
        let mut tree = sound();
        tree.put("docs/a.md", "[x](book/decisions.md#locks)\n");
        assert!(only_problem(&tree).ends_with("has no heading of that name"));
    }

    #[test]
    fn the_number_said_is_the_number_linked() {
        let mut tree = sound();
        tree.put("docs/a.md", "[ADR 7](adr/0003-spinlock.md)\n");
        assert!(only_problem(&tree).ends_with("the page is that of ADR 3"));
    }
}
