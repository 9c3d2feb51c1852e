//! Functions that were inlined: `addr2line` knows which one an instruction came from.
//!
//! An instruction belongs to the innermost function of this repository around it: what `core` and
//! registry crates do there is on that function's account.

use std::collections::HashMap;

/// Reads what `addr2line -a -f -i -C` says about addresses: for each the function it belongs to,
/// with its file.
pub fn read(output: &str) -> HashMap<u64, String> {
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
        let is_ours = !file.starts_with('/') && !file.starts_with("external/") && file != "??";
        if let (Some(address), true) = (address, is_ours) {
            owners.entry(address).or_insert_with(|| format!("{} ({file})", short(line)));
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
