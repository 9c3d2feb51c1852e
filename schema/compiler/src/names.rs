//! How schema names become Rust names.

/// Words that cannot be a field, argument or method name.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// `fsBase` → `fs_base`, as the stock generator does it.
pub fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// The name of a field, argument or method.
pub fn member(name: &str) -> String {
    let name = snake(name);
    if KEYWORDS.contains(&name.as_str()) { format!("{name}_") } else { name }
}

/// `create` → `Create`.
pub fn camel(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The module of `some-file.capnp`: `some_file`.
pub fn module(path: &str) -> String {
    let stem = path.rsplit('/').next().unwrap_or(path);
    stem.strip_suffix(".capnp").unwrap_or(stem).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_as_rust_wants() {
        assert_eq!(snake("getFsBase"), "get_fs_base");
        assert_eq!(member("type"), "type_");
        assert_eq!(camel("sleepUntil"), "SleepUntil");
        assert_eq!(module("a/thread-spawner.capnp"), "thread_spawner");
    }
}
