//! Names, and their copies in errors.

use core::fmt;

use crate::limits::NAME_BYTES;

/// A copy of a name, for an error that outlives the manifest; too long a name is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    length: u8,
    bytes: [u8; NAME_BYTES],
}

impl Name {
    /// A copy of `name`.
    pub fn new(name: &str) -> Self {
        let cut = name.floor_char_boundary(NAME_BYTES);
        let mut bytes = [0; NAME_BYTES];
        let from = name.as_bytes().get(..cut).unwrap_or_default();
        for (to, from) in bytes.iter_mut().zip(from) {
            *to = *from;
        }
        // At most NAME_BYTES.
        Self { length: from.len() as u8, bytes }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Whether `name` may be a name.
    pub fn is_good(name: &str) -> bool {
        (1..=NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
