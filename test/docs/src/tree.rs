//! The texts under test, by path.

use std::collections::BTreeMap;

use crate::{citations, cycles, decisions, index, interfaces, layers, links, objects, paths};

/// Paths from the root of the workspace, and what is in them.
#[derive(Default)]
pub struct Tree {
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// Adds a file; a path that is there already gets the new text.
    pub fn put(&mut self, path: &str, text: &str) {
        self.texts.insert(path.to_string(), text.to_string());
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether a tree was put together at all.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether `path` is a file or a folder with files below it.
    pub fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.texts.contains_key(path) || self.texts.keys().any(|file| file.starts_with(&folder))
    }
}

/// Every rule that `tree` breaks, as sentences.
pub fn problems(tree: &Tree) -> Vec<String> {
    let (decisions, mut problems) = decisions::read(tree);
    problems.extend(index::problems(tree, &decisions));
    problems.extend(citations::problems(tree, &decisions));
    problems.extend(links::problems(tree));
    problems.extend(paths::problems(tree));
    problems.extend(layers::problems(tree));
    problems.extend(objects::problems(tree));
    problems.extend(interfaces::problems(tree));
    problems.extend(cycles::problems(tree));
    problems
}

/// A small tree that keeps every rule: two decisions, one of them superseded.
#[cfg(test)]
pub(crate) fn sound() -> Tree {
    let mut tree = Tree::default();
    tree.put(
        "docs/adr/0007-spinlock-tickets.md",
        "# 7. Spinlock: tickets\n\nStatus: accepted\n\nAs ADR 3 no more.\n",
    );
    tree.put("docs/adr/0003-spinlock.md", "# 3. Spinlock: unfair\n\nStatus: superseded by 7\n");
    tree.put(
        "docs/book/decisions.md",
        "# Decisions\n\n- [3. Spinlock: unfair](../adr/0003-spinlock.md)\n\
         - [7. Spinlock: tickets](../adr/0007-spinlock-tickets.md)\n",
    );
    tree.put("docs/book/SUMMARY.md", "- [Decisions](decisions.md)\n");
    tree.put("kernel/smp/lock/src/lib.rs", "//! A lock (ADR 7).\n");
    tree
}

/// The one sentence that `tree` is refused with.
#[cfg(test)]
pub(crate) fn only_problem(tree: &Tree) -> String {
    let problems = problems(tree);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.into_iter().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sound_tree_has_no_problem() {
        assert_eq!(problems(&sound()), Vec::<String>::new());
    }
}
