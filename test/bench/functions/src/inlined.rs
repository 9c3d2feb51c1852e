//! Functions that were inlined: `addr2line` knows which one an instruction came from.
//!
//! An instruction belongs to the innermost function of this repository around it: what `core` and
//! registry crates do there is on that function's account.

use std::collections::HashMap;

/// Whose an instruction is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The function, without the arguments of its types.
    pub function: String,
    /// The file it is in, from the root of the repository.
    pub file: String,
}

/// Reads what `addr2line -a -f -i -C` says about addresses.
pub fn read(output: &str) -> HashMap<u64, Owner> {
    let mut owners = HashMap::new();
    let mut address = None;
    let mut lines = output.lines();
    while let Some(line) = lines.next() {
        if let Some(hex) = line.strip_prefix("0x") {
            address = u64::from_str_radix(hex, 16).ok();
            continue;
        }
        let Some(place) = lines.next() else { break };
        let file = place.split(':').next().unwrap_or_default();
        // Assembly has a compilation unit for a file, code without information has none.
        let is_ours =
            file.ends_with(".rs") && !file.starts_with('/') && !file.starts_with("external/");
        if let (Some(address), true) = (address, is_ours) {
            let owner = || Owner { function: short(line), file: file.to_owned() };
            owners.entry(address).or_insert_with(owner);
        }
    }
    owners
}

/// A function's name without the arguments of its types: `<a::B<C>>::d::<E>` is `a::B::d`.
pub fn short(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        out += before.strip_suffix("::").unwrap_or(before);
        let Some(end) = closing(from) else { return out + from };
        let (inside, after) = (&from[1..end], &from[end + 1..]);
        // A type in front is part of the name; arguments of a function or type are not.
        if out.is_empty() {
            let of = inside.split(" as ").next().unwrap_or(inside);
            out += &short(of);
        }
        rest = after;
    }
    out + rest
}

/// Where the bracket that opens `text` is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '<' => depth += 1,
            // Not the arrow of a function's type.
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        before = character;
    }
    None
}
