//! No two modules of a crate import each other, directly or by way of others.
//!
//! The crates of the kernel's composition are those where everything comes together, and where a cycle would
//! go unseen: any of its modules compiles, and none can be read without all the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::modules::{Imports, imports};
use crate::tree::Tree;

/// The crates whose modules have an order.
pub const ORDERED: [&str; 4] = ["kernel/dispatch", "kernel/ops", "kernel/process", "kernel/sys"];

/// The file that a crate begins with.
pub fn root(folder: &str) -> String {
    format!("{folder}/src/lib.rs")
}

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in ORDERED.into_iter().filter(|folder| tree.has(&root(folder))) {
        match imports(tree, folder) {
            Err(problem) => problems.push(problem),
            Ok(imports) => {
                problems
                    .extend(knots(&imports).iter().map(|knot| sentence(folder, &imports, knot)));
            }
        }
    }
    problems
}

/// Modules of which each is reached from each, as sets of two or more.
fn knots(imports: &Imports) -> BTreeSet<BTreeSet<&str>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        imports.keys().map(|from| (from.as_str(), from_on(imports, from))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|found| found.contains(to));
    let on_a_cycle = imports.keys().filter(|module| reaches(module, module));
    let knot = |module: &str| {
        let both = imports.keys().filter(|other| reaches(module, other) && reaches(other, module));
        both.map(String::as_str).collect()
    };
    on_a_cycle.map(|module| knot(module)).collect()
}

/// What is reached from a module in one step or more.
fn from_on<'i>(imports: &'i Imports, from: &str) -> BTreeSet<&'i str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = vec![from];
    while let Some(module) = next.pop() {
        for named in imports.get(module).into_iter().flatten() {
            if found.insert(named.as_str()) {
                next.push(named);
            }
        }
    }
    found
}

/// A shortest way through a knot from one of its modules back to it.
fn shortest<'i>(imports: &'i Imports, knot: &BTreeSet<&'i str>) -> Vec<&'i str> {
    let around = |start: &'i str| {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut next = VecDeque::from([start]);
        while let Some(module) = next.pop_front() {
            for named in imports.get(module).into_iter().flatten() {
                if named == start {
                    let mut way = vec![start, module];
                    while let Some(one) = way.last().and_then(|last| before.get(last)) {
                        way.push(one);
                    }
                    way.reverse();
                    return way;
                }
                if !before.contains_key(named.as_str()) {
                    before.insert(named, module);
                    next.push_back(named);
                }
            }
        }
        Vec::new()
    };
    knot.iter().map(|start| around(start)).min_by_key(Vec::len).unwrap_or_default()
}

fn sentence(folder: &str, imports: &Imports, knot: &BTreeSet<&str>) -> String {
    let shortest = shortest(imports, knot);
    let others: Vec<&str> =
        knot.iter().filter(|module| !shortest.contains(module)).copied().collect();
    let with = match others.is_empty() {
        true => String::new(),
        false => format!(" (and with them {})", others.join(", ")),
    };
    format!(
        "{folder}: modules import each other: {}{with}; put what two of them share into a module that both name",
        shortest.join(" → ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{only_problem, sound};

    /// The sound tree of the other rules, with a crate whose modules come in order.
    fn with_a_crate() -> Tree {
        let mut tree = sound();
        tree.put("kernel/ops/src/lib.rs", "mod a; mod b; mod c; mod d; pub use c::C;\n");
        tree.put("kernel/ops/src/a.rs", "use crate::b::B;\nuse crate::{C, d};\n");
        tree.put("kernel/ops/src/b.rs", "use crate::c::C;\n");
        tree.put("kernel/ops/src/c.rs", "use crate::d::D;\n");
        tree.put("kernel/ops/src/d.rs", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
        tree
    }

    #[test]
    fn modules_in_an_order_are_sound() {
        assert_eq!(crate::problems(&with_a_crate()), Vec::<String>::new());
    }

    #[test]
    fn two_modules_that_import_each_other_are_named() {
        let mut tree = with_a_crate();
        tree.put("kernel/ops/src/d.rs", "fn f() { crate::c::g() }\n");
        assert!(
            only_problem(&tree).starts_with("kernel/ops: modules import each other: c → d → c;")
        );
    }

    #[test]
    fn a_longer_way_round_is_named_with_those_that_are_on_others() {
        let mut tree = with_a_crate();
        tree.put("kernel/ops/src/d.rs", "use crate::a::A;\n");
        let said = only_problem(&tree);
        assert!(said.contains("a → d → a (and with them b, c);"), "{said}");
        tree.put("kernel/ops/src/a.rs", "use crate::b::B;\n");
        assert!(only_problem(&tree).contains("a → b → c → d → a;"));
    }

    #[test]
    fn a_way_through_the_root_is_one_too() {
        let mut tree = with_a_crate();
        let root = "mod a; mod b; mod c; mod d; const LIMIT: u32 = d::LIMIT;\n";
        tree.put("kernel/ops/src/lib.rs", root);
        tree.put("kernel/ops/src/a.rs", "");
        tree.put("kernel/ops/src/d.rs", "const MOST: u32 = crate::LIMIT;\n");
        assert!(only_problem(&tree).contains("crate → d → crate;"));
    }

    #[test]
    fn each_knot_is_a_sentence_and_so_is_each_crate() {
        let mut tree = with_a_crate();
        tree.put("kernel/ops/src/b.rs", "use crate::a::A;\n");
        tree.put("kernel/ops/src/d.rs", "use crate::c::C;\n");
        tree.put("kernel/sys/src/lib.rs", "mod e;\n");
        let said = crate::problems(&tree).join("\n");
        assert!(said.contains("kernel/ops: modules import each other: a → b → a;"), "{said}");
        assert!(said.contains("kernel/ops: modules import each other: c → d → c;"), "{said}");
        assert!(said.contains("kernel/sys: a module is declared without a file;"), "{said}");
    }
}
