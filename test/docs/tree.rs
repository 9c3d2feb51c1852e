//! The rules of `docs_check` hold for this tree.

use docs_check::{LAYERS, ORDERED, Tree, problems, root};

/// Fewer files than this mean that the list lost a part of the tree, not that the tree is sound.
const AT_LEAST: usize = 700;

#[test]
fn pages_and_citations_hold_together() {
    let list = std::env::var("SOURCES").unwrap();
    let mut tree = Tree::default();
    for path in std::fs::read_to_string(list).unwrap().lines() {
        tree.put(path, &String::from_utf8_lossy(&std::fs::read(path).unwrap()));
    }
    assert!(tree.len() >= AT_LEAST, "only {} files are listed", tree.len());
    tree.put(LAYERS, &std::env::var("LAYERS").unwrap());
    for folder in ORDERED {
        assert!(tree.has(&root(folder)), "{} is not listed", root(folder));
    }
    let problems = problems(&tree);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
