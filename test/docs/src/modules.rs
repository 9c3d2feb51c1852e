//! The modules of a crate, and which names which.
//!
//! A module is a file. It names another by a path from `crate`, `self`, `super` or one of its own modules, in
//! a `use` or anywhere else. What the root re-exports is its module's: `crate::Machine` names `machine`. Test
//! code does not count.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust::{Token, closed, code};
use crate::tree::Tree;
use Token::{Colons, Mark, Word};

/// The modules of a crate, `a::b` or `crate` for the root, and those that each names.
pub(crate) type Imports = BTreeMap<String, BTreeSet<String>>;

/// What the root module is called.
const ROOT: &str = "crate";

/// The imports of the crate in `folder`; or what its modules lack.
pub(crate) fn imports(tree: &Tree, folder: &str) -> Result<Imports, String> {
    let mut modules = BTreeMap::new();
    read(tree, folder, &mut Vec::new(), &mut modules)?;
    let reexports = modules.get(ROOT).map(reexports).unwrap_or_default();
    let mut imports = Imports::new();
    for (name, module) in &modules {
        let named = module.paths.iter().filter(|path| !(name == ROOT && path.is_reexport));
        let named = named.map(|path| resolved(&modules, &reexports, &path.words));
        imports.insert(name.clone(), named.filter(|other| other != name).collect());
    }
    Ok(imports)
}

/// What a file says.
struct Module {
    paths: Vec<Path>,
}

/// A path to something of the crate, from its root.
#[derive(Debug, PartialEq, Eq)]
struct Path {
    words: Vec<String>,
    /// It gives what it names on, as `pub use` does.
    is_reexport: bool,
}

/// Reads the module at `place` and those it declares.
fn read(
    tree: &Tree,
    folder: &str,
    place: &mut Vec<String>,
    modules: &mut BTreeMap<String, Module>,
) -> Result<(), String> {
    let stem = format!("{folder}/src/{}", place.join("/"));
    let files = match place.is_empty() {
        true => vec![format!("{stem}lib.rs")],
        false => vec![format!("{stem}.rs"), format!("{stem}/mod.rs")],
    };
    let Some(text) = files.iter().find_map(|file| tree.text(file)) else {
        return Err(format!(
            "{folder}: a module is declared without a file; {}",
            files.join(" or ")
        ));
    };
    let tokens = code(text);
    let mut reader = Reader { place: place.clone(), ..Reader::default() };
    reader.read(&tokens);
    let name = if place.is_empty() { ROOT.to_string() } else { place.join("::") };
    modules.insert(name, Module { paths: reader.paths });
    for child in reader.children {
        place.push(child);
        read(tree, folder, place, modules)?;
        place.pop();
    }
    Ok(())
}

/// What a file declares and names.
#[derive(Default)]
struct Reader {
    /// The module that is read: the file's, and the inline ones in it.
    place: Vec<String>,
    /// Modules with files of their own.
    children: Vec<String>,
    paths: Vec<Path>,
}

impl Reader {
    fn read(&mut self, tokens: &[Token<'_>]) {
        // Declared anywhere in the file, a module can be named anywhere in it.
        for window in tokens.windows(3) {
            if let [Word("mod"), Word(name), Mark(';')] = window {
                self.children.push((*name).to_string());
            }
        }
        self.read_inside(tokens);
    }

    fn read_inside(&mut self, tokens: &[Token<'_>]) {
        let mut before = Mark(';');
        let mut rest = tokens;
        while let [first, after @ ..] = rest {
            let taken = match rest {
                [Word("mod"), Word(name), Mark('{'), inside @ ..] => {
                    let length = closed(inside, '{', '}');
                    self.place.push((*name).to_string());
                    self.read_inside(&inside[..length]);
                    self.place.pop();
                    3 + length
                }
                [Word("use"), tree @ ..] => {
                    // `pub use`, and `pub(crate) use`.
                    let is_reexport = matches!(before, Word("pub") | Mark(')'));
                    1 + self.use_tree(tree, &[], is_reexport)
                }
                [Word(_), Colons, ..] if before != Colons => self.path(rest),
                _ => 1,
            };
            before = *rest.get(taken - 1).unwrap_or(first);
            rest = rest.get(taken..).unwrap_or(after);
        }
    }

    /// Reads a path outside of a `use`; how many tokens it has.
    fn path(&mut self, tokens: &[Token<'_>]) -> usize {
        let mut words = Vec::new();
        let mut length = 0;
        while let Some(Word(word)) = tokens.get(length) {
            words.push(*word);
            length += 1;
            if tokens.get(length) != Some(&Colons) {
                break;
            }
            length += 1;
        }
        self.name(&words, false);
        length
    }

    /// Reads one tree of a `use` below `prefix`; how many tokens it has.
    fn use_tree(&mut self, tokens: &[Token<'_>], prefix: &[&str], is_reexport: bool) -> usize {
        let mut words = prefix.to_vec();
        let mut length = 0;
        loop {
            match tokens.get(length..) {
                Some([Word(word), Colons, ..]) => {
                    words.push(word);
                    length += 2;
                }
                // `use ::other::x`.
                Some([Colons, ..]) => length += 1,
                Some([Mark('{'), inside @ ..]) => {
                    let end = closed(inside, '{', '}');
                    let mut at = 0;
                    while at + 1 < end {
                        at += self.use_tree(&inside[at..end - 1], &words, is_reexport);
                        // The comma.
                        at += 1;
                    }
                    return length + 1 + end;
                }
                Some([Word(last), Word("as"), Word(_), ..]) => {
                    words.push(last);
                    self.name(&words, is_reexport);
                    return length + 3;
                }
                Some([Word(last), ..]) => {
                    words.push(last);
                    self.name(&words, is_reexport);
                    return length + 1;
                }
                // `*` names the module itself; nothing behind a comma names nothing.
                Some([Mark('*'), ..]) => {
                    self.name(&words, false);
                    return length + 1;
                }
                _ => return length.max(1),
            }
        }
    }

    /// Notes what a path names, if that is of this crate.
    fn name(&mut self, words: &[&str], is_reexport: bool) {
        let mut from = match words.first() {
            Some(&"crate") => Vec::new(),
            Some(&"self" | &"super") => self.place.clone(),
            Some(first) if self.children.iter().any(|child| child == first) => self.place.clone(),
            _ => return,
        };
        for word in words {
            match *word {
                "crate" | "self" => {}
                "super" => drop(from.pop()),
                word => from.push(word.to_string()),
            }
        }
        self.paths.push(Path { words: from, is_reexport });
    }
}

/// What the root re-exports by name, and where it is.
fn reexports(root: &Module) -> BTreeMap<String, Vec<String>> {
    let path = root.paths.iter().filter(|path| path.is_reexport);
    path.filter_map(|path| Some((path.words.last()?.clone(), path.words.clone()))).collect()
}

/// The module that a path from the root names, or is inside of.
fn resolved(
    modules: &BTreeMap<String, Module>,
    reexports: &BTreeMap<String, Vec<String>>,
    words: &[String],
) -> String {
    let words = match words.first() {
        Some(first) if !modules.contains_key(first) => reexports.get(first).map_or(words, |to| to),
        _ => words,
    };
    let lengths = (1..=words.len()).rev();
    let names = lengths.map(|length| words[..length].join("::"));
    names.into_iter().find(|name| modules.contains_key(name)).unwrap_or(ROOT.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let mut tree = Tree::default();
        for (path, text) in files {
            tree.put(&format!("x/src/{path}"), text);
        }
        let imports = imports(&tree, "x")?;
        let line = |(name, named): (String, BTreeSet<String>)| {
            let named: Vec<String> = named.into_iter().collect();
            format!("{name}: {}", named.join(" "))
        };
        Ok(imports.into_iter().map(line).collect())
    }

    #[test]
    fn uses_and_paths_name_modules() {
        let found = of(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::{self, X}, c as d}; use other::b;"),
            ("b.rs", "fn f() -> crate::c::Y { other::crate_::a::f() }"),
            ("c.rs", "pub(crate) struct Y; // crate::a\n/// crate::b\nfn g() { \"crate::a\" }"),
        ]);
        assert_eq!(found.unwrap(), ["a: b c", "b: c", "c: ", "crate: "]);
    }

    #[test]
    fn the_root_names_what_it_uses_and_not_what_it_gives_on() {
        let found = of(&[
            ("lib.rs", "mod a; mod b; pub use b::{Thing, Other as Else}; hooks! { x = a::run }"),
            ("a.rs", "use crate::Thing;"),
            ("b.rs", "use crate::{ROOTS_OWN, Thing};"),
        ]);
        assert_eq!(found.unwrap(), ["a: b", "b: crate", "crate: a"]);
    }

    #[test]
    fn a_module_below_another_is_one_of_its_own() {
        let found = of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod inner; mod inline { use super::inner::X; } use self::inner::Y;"),
            ("a/inner.rs", "use super::f; use crate::b::g;"),
            ("b.rs", "use crate::a::inner::{X, Y}; use super::a;"),
        ]);
        assert_eq!(found.unwrap(), ["a: a::inner", "a::inner: a b", "b: a a::inner", "crate: "]);
    }

    #[test]
    fn test_code_names_nothing() {
        let found = of(&[
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod world;"),
            ("a.rs", "use crate::b::X; #[cfg(test)] mod tests { use crate::b::Y; use super::*; }"),
            ("b.rs", "#[cfg(test)] use crate::a::Z; #[cfg(test)] fn f() { crate::a::g() }"),
        ]);
        assert_eq!(found.unwrap(), ["a: b", "b: ", "crate: "]);
    }

    #[test]
    fn a_glob_names_its_module() {
        let found = of(&[("lib.rs", "mod a; mod b; pub use a::*;"), ("a.rs", ""), ("b.rs", "")]);
        assert_eq!(found.unwrap(), ["a: ", "b: ", "crate: a"]);
    }

    #[test]
    fn a_module_without_a_file_is_refused() {
        let said = of(&[("lib.rs", "mod a;")]).unwrap_err();
        assert_eq!(said, "x: a module is declared without a file; x/src/a.rs or x/src/a/mod.rs");
    }
}
