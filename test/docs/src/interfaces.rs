//! Interfaces by their tags: no two of the tree have one tag, and a manifest names interfaces of the tree.
//!
//! The tag is `abi_types::InterfaceTag`, written a second time here: its two halves, one over the other.

use std::collections::BTreeMap;

use crate::tree::Tree;

/// Where an interface's id begins in its declaration, and in a manifest's grant.
const DECLARED: &str = "interface ";
const GRANTED: &str = "interfaceId = 0x";

fn tag(id: u64) -> u32 {
    (id >> 32) as u32 ^ id as u32
}

/// The hexadecimal number that a text begins with.
fn hex(text: &str) -> Option<u64> {
    let digits = text.split(|c: char| !c.is_ascii_hexdigit()).next()?;
    u64::from_str_radix(digits, 16).ok()
}

/// The interfaces that a schema declares: name and id.
fn declared(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.lines().filter_map(|line| {
        let (name, id) = line.trim_start().strip_prefix(DECLARED)?.split_once(" @0x")?;
        Some((name, hex(id)?))
    })
}

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    let mut by_tag: BTreeMap<u32, (String, u64)> = BTreeMap::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".capnp")) {
        for (name, id) in declared(text) {
            let this = format!("{path}: interface {name}");
            if tag(id) == 0 {
                problems.push(format!("{this} has an id with two equal halves; take another"));
            }
            match by_tag.get(&tag(id)) {
                Some((other, _)) => problems
                    .push(format!("{this} has the tag {:#x} of {other}; take another id", tag(id))),
                None => drop(by_tag.insert(tag(id), (this, id))),
            }
        }
    }
    let manifests = [".capnp", ".bzl"];
    for (path, text) in tree.files().filter(|(path, _)| manifests.iter().any(|e| path.ends_with(e)))
    {
        for id in text.split(GRANTED).skip(1).filter_map(hex) {
            if by_tag.get(&tag(id)).is_none_or(|(_, known)| *known != id) {
                problems.push(format!("{path}: {id:#x} is the id of no interface in the tree"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use crate::tree::{only_problem, sound};

    const ONE: &str = "interface One @0x8000000000000001 {\n}\n";

    #[test]
    fn two_interfaces_with_one_tag_are_named() {
        let mut tree = sound();
        tree.put("schema/one.capnp", ONE);
        tree.put("schema/two.capnp", "  interface Two @0x8000000100000000 {}");
        let problem = only_problem(&tree);
        assert!(problem.contains("interface Two has the tag 0x80000001 of"), "{problem}");
        assert!(problem.contains("schema/one.capnp: interface One"), "{problem}");
    }

    #[test]
    fn an_id_that_folds_into_nothing_is_named() {
        let mut tree = sound();
        tree.put("schema/one.capnp", "interface One @0x8000000180000001 {}");
        assert!(only_problem(&tree).contains("two equal halves"));
    }

    #[test]
    fn a_manifest_names_interfaces_that_are_there() {
        let mut tree = sound();
        tree.put("schema/one.capnp", ONE);
        let grant = |id: &str| format!("endpoint = (name = \"e\", interfaceId = 0x{id})");
        tree.put("test/good.capnp", &grant("8000000000000001"));
        tree.put("test/bad.bzl", &grant("8000000000000002"));
        let problem = only_problem(&tree);
        assert!(problem.contains("test/bad.bzl: 0x8000000000000002 is the id of no"), "{problem}");
    }
}
