//! A command line as a person can paste it.

use std::ffi::OsStr;

/// `words` as one line for a POSIX shell.
pub fn quoted<S: AsRef<OsStr>>(words: impl IntoIterator<Item = S>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

fn quote(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        assert_eq!(quoted(["-smp", "2", "a,b=c"]), "-smp 2 a,b=c");
        assert_eq!(quoted(["", "a b", "it's", "$x"]), r#"'' 'a b' 'it'\''s' '$x'"#);
    }
}
