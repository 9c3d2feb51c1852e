//! The order of the layers, as the architecture's page says it in one sentence, is the one that the build holds.
//!
//! The sentence is the page's inline code with arrows: `a ← b` says that `b` names `a` and all before it, and
//! `{b ← c, d}` that `d` names neither. Folders stand for those of `kernel/` unless they are at the root.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::Tree;

const PAGE: &str = "docs/book/architecture.md";

/// Where the table of `platforms/layers/layers.bzl` is put: `folder: folder folder …`, one after the other
/// with semicolons between.
pub const TABLE: &str = "platforms/layers/layers.bzl, LAYERS";

/// Layers outside the sentence: one that its second half is about, and tools of the host.
fn is_apart(layer: &str) -> bool {
    layer == "kernel/core/machine" || layer.starts_with("platforms/")
}

/// Folders, and those whose crates each may name.
type Layers = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let (Some(table), Some(page)) = (tree.text(TABLE), tree.text(PAGE)) else { return Vec::new() };
    let table = read(table);
    let mut said = Layers::new();
    for chain in page.split('`').skip(1).step_by(2).filter(|code| code.contains('←')) {
        follow(chain, &BTreeSet::new(), &table, &mut said);
    }
    let mut problems = Vec::new();
    for (layer, below) in &said {
        match table.get(layer) {
            None => problems
                .push(format!("{PAGE}: the order names {layer}, which has no row in {TABLE}")),
            Some(held) if held != below => problems.push(format!(
                "{PAGE}: by the order {layer} may name {}; by {TABLE} it may name {}",
                listed(below),
                listed(held),
            )),
            Some(_) => {}
        }
    }
    for layer in table.keys().filter(|layer| !said.contains_key(*layer)) {
        problems
            .push(format!("{PAGE}: the order does not name {layer}, which has a row in {TABLE}"));
    }
    problems
}

fn read(table: &str) -> Layers {
    let row = |row: &str| {
        let (layer, below) = row.split_once(':')?;
        let below = below.split_whitespace().filter(|layer| !is_apart(layer));
        Some((layer.trim().to_string(), below.map(str::to_string).collect()))
    };
    table.split(';').filter_map(row).filter(|(layer, _)| !is_apart(layer)).collect()
}

/// Follows a chain behind what is `before` it; what is before the next one.
fn follow(
    chain: &str,
    before: &BTreeSet<String>,
    table: &Layers,
    said: &mut Layers,
) -> BTreeSet<String> {
    let mut below = before.clone();
    for link in split(chain, '←') {
        if let Some(group) = link.strip_prefix('{').and_then(|link| link.strip_suffix('}')) {
            let ways = split(group, ',').into_iter().map(|way| follow(way, &below, table, said));
            below = ways.flatten().collect();
            continue;
        }
        let is_at_the_root = table.contains_key(link);
        let layer = if is_at_the_root { link.to_string() } else { format!("kernel/{link}") };
        below.insert(layer.clone());
        said.insert(layer, below.clone());
    }
    below
}

/// The parts of `text` between the separators that are in no braces.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == separator
    });
    parts.map(str::trim).collect()
}

fn listed(layers: &BTreeSet<String>) -> String {
    layers.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{only_problem, sound};

    const HELD: &str = "abi: abi; kernel/core: abi kernel/core; kernel/core/machine: abi; \
        kernel/arch: abi kernel/core kernel/core/machine kernel/arch; \
        kernel/mm: abi kernel/core kernel/arch kernel/mm; kernel/object: abi kernel/core kernel/object; \
        kernel/sys: abi kernel/core kernel/arch kernel/mm kernel/object kernel/sys; \
        platforms/image: abi kernel/core; runtime: abi runtime";

    fn with(order: &str, table: &str) -> Tree {
        let mut tree = sound();
        tree.put("docs/book/SUMMARY.md", "[](decisions.md) [](architecture.md)\n");
        tree.put(PAGE, &format!("Folders of `core` point one way: {order}.\n"));
        tree.put(TABLE, table);
        tree
    }

    #[test]
    fn an_order_that_is_held_is_sound() {
        let order = "`abi ← core ← {arch ← mm, object} ← sys`, and `abi ← runtime`";
        assert_eq!(crate::problems(&with(order, HELD)), Vec::<String>::new());
    }

    #[test]
    fn an_order_that_is_not_held_is_said_both_ways() {
        let order = "`abi ← core ← {arch, mm, object} ← sys`, and `abi ← runtime`";
        assert_eq!(
            only_problem(&with(order, HELD)),
            format!(
                "{PAGE}: by the order kernel/mm may name abi, kernel/core, kernel/mm; \
                 by {TABLE} it may name abi, kernel/arch, kernel/core, kernel/mm"
            )
        );
    }

    #[test]
    fn a_layer_is_in_both() {
        let order = "`abi ← core ← {arch ← mm, object} ← sys ← bin`, and `abi ← runtime`";
        assert!(only_problem(&with(order, HELD)).contains("names kernel/bin, which has no row"));
        let order = "`abi ← core ← {arch ← mm, object} ← sys`";
        assert!(only_problem(&with(order, HELD)).contains("does not name runtime"));
    }
}
