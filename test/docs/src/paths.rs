//! A file of a crate's sources that a page names by its whole path is there.
//!
//! A path stands in backticks and begins with a folder of the root; `{a,b}` is one path with `a` and one with
//! `b`. A file called `x.rs` stands for any, and `…` for what a reader knows. Tests beside the sources are not
//! looked for, because not all of them are in the tree.

use crate::tree::Tree;

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (page, text) in tree.files().filter(|(path, _)| path.ends_with(".md")) {
        for code in text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)) {
            for path in expanded(code) {
                if is_path(tree, &path) && !tree.has(&path) {
                    problems.push(format!("{page}: `{code}`: there is no {path}"));
                }
            }
        }
    }
    problems
}

/// Whether that is a path from the root to a source file.
fn is_path(tree: &Tree, code: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let Some((root, _)) = code.split_once('/') else { return false };
    let is_source = code.contains("/src/") && code.ends_with(".rs") && !code.ends_with("/x.rs");
    is_source && code.chars().all(is_plain) && tree.has(root)
}

/// The paths that braces stand for.
fn expanded(code: &str) -> Vec<String> {
    let parts = code.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    let Some((before, inside, after)) = parts else { return vec![code.to_string()] };
    inside.split(',').flat_map(|one| expanded(&format!("{before}{}{after}", one.trim()))).collect()
}

#[cfg(test)]
mod tests {
    use crate::tree::{only_problem, sound};

    #[test]
    fn a_path_to_nothing_is_refused() {
        let mut tree = sound();
        tree.put(
            "README.md",
            "Read `kernel/smp/lock/src/lib.rs`, then `kernel/smp/lock/src/turn.rs`.\n",
        );
        assert_eq!(
            only_problem(&tree),
            "README.md: `kernel/smp/lock/src/turn.rs`: there is no kernel/smp/lock/src/turn.rs"
        );
    }

    #[test]
    fn each_of_those_in_braces_is_meant() {
        let mut tree = sound();
        tree.put("README.md", "`kernel/smp/{lock,rq}/src/{lib}.rs`\n");
        assert!(only_problem(&tree).ends_with("there is no kernel/smp/rq/src/lib.rs"));
    }

    #[test]
    fn what_is_no_path_from_the_root_may_stand_there() {
        let mut tree = sound();
        tree.put(
            "README.md",
            "`turn.rs`, `lock/src/turn.rs`, `kernel/a/src/x.rs`, `kernel/…/src/b.rs`, `kernel/a/tests/c.rs`\n",
        );
        assert_eq!(crate::problems(&tree), Vec::<String>::new());
    }
}
