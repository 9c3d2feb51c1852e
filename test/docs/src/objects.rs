//! An object that the kernel serves has all of its places: see the page "Adding a kernel object".
//!
//! A file of `kernel/object` makes an object; the rule lists what is missing beside it, and what the page
//! does not name. Variants and hosts are not looked for: without them the arms do not compile.

use crate::tree::Tree;

const SERVERS: &str = "kernel/object/src/";
const MODULES: &str = "kernel/object/src/lib.rs";
const GRANTS: &str = "kernel/core/manifest/src/grant.rs";
const MANIFEST: &str = "schema/manifest.capnp";
const TRANSFERABLE: &str = "schema/transferability.txt";
/// The machine's objects: which interface serves which.
const TABLE: &str = "kernel/sys/src/object/mod.rs";
/// Where a manifest's grants become capabilities.
const LOADER: &str = "kernel/sys/src/loader.rs";
const PAGE: &str = "docs/book/adding-a-kernel-object.md";

/// Objects that no manifest grants, and whose results they are.
const RESULTS_OF: [(&str, &str); 3] = [
    ("thread_handle", "ThreadSpawner.create"),
    ("process_handle", "ProcessSpawner.spawn"),
    ("memory_object", "FrameAllocator.createObject"),
];

/// Interfaces that are not called as their file is.
const CALLED: [(&str, &str); 1] = [("scheduling_policy", "SchedulingPolicyCap")];

/// How many places an object has at most; one more is one too many to remember.
const MOST_PLACES: usize = 8;

/// A place: what it is, and whether it is there.
type Place = (String, bool);

pub(crate) fn problems(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, server) in tree.files() {
        let Some(name) = path.strip_prefix(SERVERS).and_then(|file| file.strip_suffix(".rs"))
        else {
            continue;
        };
        // A file below that of its object is a part of it.
        if path == MODULES || name.contains('/') {
            continue;
        }
        let places = places(tree, name, server);
        assert!(places.len() <= MOST_PLACES, "{} places of {name}", places.len());
        for (what, is_there) in places {
            if !is_there {
                problems.push(format!("{path}: missing: {what}"));
            }
        }
    }
    if let Some(page) = tree.text(PAGE) {
        for place in [SERVERS, MODULES, TRANSFERABLE, TABLE, MANIFEST, GRANTS, LOADER] {
            if !page.contains(&format!("`{place}")) {
                problems.push(format!("{PAGE}: `{place}` is not named, and is one of the places"));
            }
        }
    }
    problems
}

fn places(tree: &Tree, name: &str, server: &str) -> Vec<Place> {
    let kind_name = pascal(name);
    let camel = kind_name[..1].to_lowercase() + &kind_name[1..];
    let called = CALLED.iter().find(|(file, _)| *file == name);
    let interface = called.map_or(kind_name.clone(), |(_, called)| (*called).to_string());
    let has = |path: &str, line: &str| tree.text(path).is_some_and(|text| text.contains(line));
    let dispatch = format!("schema::{name}::dispatch(");
    let kind = format!("GrantKind::{kind_name}");
    let client =
        [format!("{name}::Client"), format!("{name}::methods"), format!("{name}::INTERFACE_ID")];
    let guest_says = |word: &String| {
        tree.files().any(|(path, text)| path.starts_with("test/qemu/") && text.contains(word))
    };
    let mut places = vec![
        (
            format!("schema/{name}.capnp, with the interface {interface}"),
            has(&format!("schema/{name}.capnp"), &format!("interface {interface} ")),
        ),
        (
            format!("{TRANSFERABLE}: a line for {interface}"),
            lines(tree, TRANSFERABLE)
                .any(|line| line.split(' ').next() == Some(interface.as_str())),
        ),
        (format!("{MODULES}: `pub mod {name};`"), has(MODULES, &format!("pub mod {name};"))),
        ("host tests in the server's own file".to_string(), server.contains("#[cfg(test)]")),
        (format!("{TABLE}: `{dispatch}`"), has(TABLE, &dispatch)),
        (
            format!("a guest test of it: `{}` below test/qemu", client[0]),
            client.iter().any(guest_says),
        ),
    ];
    if !RESULTS_OF.iter().any(|(result, _)| *result == name) {
        places.push((
            format!("{MANIFEST}: `{camel}` in Grant, and {GRANTS}: `{kind}`"),
            lines(tree, MANIFEST).any(|line| {
                let line = line.trim_start();
                line.starts_with(&format!("{camel} @"))
                    || line.starts_with(&format!("{camel} :group"))
            }) && has(GRANTS, &kind),
        ));
        places.push((format!("{LOADER}: `{kind}`"), has(LOADER, &kind)));
    }
    places
}

fn lines<'t>(tree: &'t Tree, path: &str) -> impl Iterator<Item = &'t str> {
    tree.text(path).unwrap_or_default().lines()
}

/// `thread_spawner` as `ThreadSpawner`.
fn pascal(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sound tree of the other rules, with an object that has all of its places.
    fn with_a_clock() -> Tree {
        let mut tree = crate::tree::sound();
        tree.put("kernel/object/src/wall_clock.rs", "#[cfg(test)]\nmod tests {}\n");
        tree.put(MODULES, "pub mod wall_clock;\n");
        tree.put("schema/wall_clock.capnp", "interface WallClock @0x1 {}\n");
        tree.put(TRANSFERABLE, "Timer yes x\nWallClock  yes  reads only\n");
        tree.put(MANIFEST, "  union {\n    wallClock @12 :Void;\n  }\n");
        tree.put(GRANTS, "grant::WallClock(()) => GrantKind::WallClock,\n");
        tree.put(TABLE, "schema::wall_clock::dispatch(server)\n");
        tree.put(LOADER, "GrantKind::WallClock => x\n");
        tree.put("test/qemu/ring/src/objects.rs", "wall_clock::Client::new()\n");
        tree
    }

    #[test]
    fn an_object_with_all_its_places_is_sound() {
        assert_eq!(crate::problems(&with_a_clock()), Vec::<String>::new());
    }

    #[test]
    fn each_place_that_is_missing_is_named() {
        for (path, text, words) in [
            ("kernel/object/src/wall_clock.rs", "", "host tests"),
            (MODULES, "", "`pub mod wall_clock;`"),
            ("schema/wall_clock.capnp", "", "the interface WallClock"),
            (TRANSFERABLE, "WallClocks yes\n", "a line for WallClock"),
            (MANIFEST, "    # wallClock @12\n", "`wallClock` in Grant"),
            (GRANTS, "", "`wallClock` in Grant"),
            (TABLE, "schema::wall_clock", "`schema::wall_clock::dispatch(`"),
            (LOADER, "GrantKind::Timer", "loader.rs: `GrantKind::WallClock`"),
            ("test/qemu/ring/src/objects.rs", "", "a guest test of it"),
        ] {
            let mut tree = with_a_clock();
            tree.put(path, text);
            let said = crate::tree::only_problem(&tree);
            assert!(
                said.starts_with("kernel/object/src/wall_clock.rs: missing: ")
                    && said.contains(words),
                "{said}"
            );
        }
    }

    #[test]
    fn a_new_file_alone_is_told_every_other_place() {
        let mut tree = with_a_clock();
        tree.put("kernel/object/src/lamp.rs", "");
        assert_eq!(crate::problems(&tree).len(), MOST_PLACES);
    }

    #[test]
    fn the_page_names_the_places() {
        let mut tree = with_a_clock();
        tree.put("docs/book/SUMMARY.md", "[](decisions.md) [](adding-a-kernel-object.md)\n");
        let places = [SERVERS, MODULES, TRANSFERABLE, TABLE, MANIFEST, GRANTS];
        let page = places.map(|place| format!("| `{place}` |\n")).concat();
        tree.put(PAGE, &page);
        let said = crate::tree::only_problem(&tree);
        assert_eq!(said, format!("{PAGE}: `{LOADER}` is not named, and is one of the places"));
        tree.put(PAGE, &format!("{page}| `{LOADER}` |\n"));
        assert_eq!(crate::problems(&tree), Vec::<String>::new());
    }
}
