//! Rust's text as tokens, as far as paths need them: no comments, no literals, no test code.

/// A token; what is neither a word nor `::` is a mark by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    Word(&'t str),
    Colons,
    Mark(char),
}

use Token::{Colons, Mark, Word};

/// The tokens of a file that count outside of tests.
pub(crate) fn code(text: &str) -> Vec<Token<'_>> {
    without_tests(&tokens(text))
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if let Some(length) = literal(rest) {
            length
        } else if rest.starts_with("::") {
            tokens.push(Colons);
            2
        } else if is_of_word(first) {
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            tokens.push(Word(&rest[..length]));
            length
        } else {
            if !first.is_whitespace() {
                tokens.push(Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment that `text` begins with; such comments nest.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if text[at..].starts_with("*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the string or character that `text` begins with, if it does.
fn literal(text: &str) -> Option<usize> {
    let bare = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - bare.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = bare.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
        return Some(prefix + 1 + hashes + 1 + length);
    }
    let quote = bare.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut inside = bare.char_indices().skip(1);
    if quote == '\'' {
        // A lifetime has no second quote behind its first character.
        let mut ahead = bare.chars().skip(1);
        if ahead.next()? != '\\' && ahead.next() != Some('\'') {
            return None;
        }
    }
    while let Some((at, c)) = inside.next() {
        if c == '\\' {
            inside.next();
        } else if c == quote {
            return Some(prefix + at + 1);
        }
    }
    Some(text.len())
}

/// `tokens` without the items under `#[cfg(test)]`.
fn without_tests<'t>(tokens: &[Token<'t>]) -> Vec<Token<'t>> {
    let mut kept = Vec::new();
    let mut rest = tokens;
    while let [first, after @ ..] = rest {
        rest = match rest {
            [Mark('#'), Mark('['), attribute @ ..] => {
                let (attribute, behind) = attribute.split_at(closed(attribute, '[', ']'));
                if is_of_tests(attribute) {
                    past_item(behind)
                } else {
                    kept.extend([Mark('#'), Mark('[')]);
                    kept.extend(attribute);
                    behind
                }
            }
            _ => {
                kept.push(*first);
                after
            }
        };
    }
    kept
}

/// How many tokens there are up to the mark that closes what was opened before them, itself included.
pub(crate) fn closed(tokens: &[Token<'_>], open: char, close: char) -> usize {
    let mut depth = 1;
    let end = tokens.iter().position(|token| {
        depth += usize::from(*token == Mark(open));
        depth -= usize::from(*token == Mark(close));
        depth == 0
    });
    end.map_or(tokens.len(), |at| at + 1)
}

/// Whether an attribute leaves its item to tests: `cfg(test)`, or `cfg(all(…))` with `test` in it.
fn is_of_tests(attribute: &[Token<'_>]) -> bool {
    match attribute {
        [Word("cfg"), Mark('('), Word("test"), Mark(')'), ..] => true,
        [Word("cfg"), Mark('('), Word("all"), Mark('('), all @ ..] => {
            let all = &all[..closed(all, '(', ')')];
            let mut depth = 0_u32;
            all.iter().enumerate().any(|(at, token)| {
                match token {
                    Mark('(') => depth += 1,
                    Mark(')') => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let is_whole = matches!(all.get(at + 1), Some(Mark(',' | ')')));
                depth == 0 && is_whole && *token == Word("test")
            })
        }
        _ => false,
    }
}

/// What follows the item that `tokens` begin with: it ends with its braces, or with a semicolon.
fn past_item<'a, 't>(tokens: &'a [Token<'t>]) -> &'a [Token<'t>] {
    let mut depth = 0_u32;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Mark('(' | '[') => depth += 1,
            Mark(')' | ']') => depth = depth.saturating_sub(1),
            Mark(';') if depth == 0 => return &tokens[at + 1..],
            Mark('{') if depth == 0 => {
                // A semicolon behind the braces, as of a `use`, is left: it says nothing.
                let inside = &tokens[at + 1..];
                return &inside[closed(inside, '{', '}')..];
            }
            _ => {}
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let word = |token| if let Word(word) = token { Some(word) } else { None };
        code(text).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_literals_are_no_words() {
        assert_eq!(words("a // b\n /* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(words(r##"a("b\"c", 'd', '\'', b'e', b"f", r#"g"h"#, r"i") j"##), ["a", "j"]);
        assert_eq!(words("fn f<'a>(x: &'a str) {}"), ["fn", "f", "a", "x", "a", "str"]);
        assert_eq!(words("crate bc r"), ["crate", "bc", "r"]);
    }

    #[test]
    fn items_of_tests_are_left_out() {
        assert_eq!(words("a #[cfg(test)] mod tests { use b::{c}; fn d() {} } e"), ["a", "e"]);
        assert_eq!(words("#[cfg(test)] mod tests; a"), ["a"]);
        assert_eq!(words("#[cfg(test)] use a::{b, c}; d"), ["d"]);
        assert_eq!(words("#[cfg(all(test, not(loom)))] #[b] fn c([d; 2]: e) { f } g"), ["g"]);
        assert_eq!(words("#[cfg(not(test))] a"), ["cfg", "not", "test", "a"]);
        assert_eq!(words("#[cfg(all(not(test), a))] b"), ["cfg", "all", "not", "test", "a", "b"]);
    }
}
