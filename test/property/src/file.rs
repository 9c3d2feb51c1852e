//! The files seeds are kept in.

use proptest::test_runner::PersistedSeed;
use std::fmt;
use std::path::{Path, PathBuf};

/// What of a shrunken value goes into a remark; the seed brings it back whole.
const REMARK_CHARS: usize = 160;

/// Where the seeds of a source file are kept, from the root of the workspace.
pub fn file_of(source: &Path) -> PathBuf {
    let is_root = |part: &Path| part.ends_with("src") || part.ends_with("tests");
    // The outermost one: `src/tests/x.rs` is below `src`.
    let root = source.ancestors().filter(|part| is_root(part)).last();
    let package = root.or(Some(source)).and_then(Path::parent).unwrap_or(Path::new(""));
    let below = source.strip_prefix(package).unwrap_or(source);
    package.join("proptest-regressions").join(below).with_extension("txt")
}

/// A line that keeps a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The seed.
    pub seed: PersistedSeed,
    /// For people: what it shrinks to.
    pub remark: String,
}

impl Line {
    /// The line of a failure.
    pub fn new(seed: PersistedSeed, shrunken: &dyn fmt::Debug) -> Self {
        // One line, and nothing that would end a quoted word of the shell.
        let plain = |c: char| if c.is_control() || c == '\'' { ' ' } else { c };
        let text = format!("shrinks to {shrunken:?}");
        let mut remark: String = text.chars().take(REMARK_CHARS).map(plain).collect();
        if remark.len() < text.len() {
            remark.push('…');
        }
        Self { seed, remark }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} # {}", self.seed, self.remark)
    }
}

/// The seeds of a file, in its order; or what is wrong with one of its lines.
pub(crate) fn seeds(text: &str) -> Result<Vec<PersistedSeed>, String> {
    let mut seeds = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let seed = line.split('#').next().unwrap_or("").trim();
        if seed.is_empty() {
            continue;
        }
        seeds.push(seed.parse().map_err(|()| {
            format!(
                "line {number}: `{seed}` is not a seed: one is `cc` and 64 hexadecimal digits, as a \
                 failing test prints it; a remark begins with `#`"
            )
        })?);
    }
    Ok(seeds)
}
