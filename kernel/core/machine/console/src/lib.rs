//! A console between those who write and read and a line that takes and gives a few bytes at a time.
//!
//! Text goes to the log ring first; a [`Drain`] is the place up to which the line has sent it, so the log is
//! the queue, and what is in it is remembered whether it was sent or not. What arrives waits in an [`Input`].
//! Neither knows a port, a lock or an interrupt.
#![no_std]

mod drain;
mod input;

pub use drain::Drain;
pub use input::Input;

/// How many of `bytes` are taken at once: at most `most` and `lines` line ends, without cutting a character of
/// UTF-8 in two. What is no text is cut anywhere.
pub fn portion(bytes: &[u8], most: usize, lines: usize) -> usize {
    /// A character's bytes after its first, at most.
    const MAX_CONTINUATION: usize = 3;
    let mut ends = bytes.iter().take(most).enumerate().filter(|(_, byte)| **byte == b'\n');
    if let Some((at, _)) = ends.nth(lines.saturating_sub(1)) {
        return at + 1;
    }
    if bytes.len() <= most {
        return bytes.len();
    }
    let continues = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let end = (most.saturating_sub(MAX_CONTINUATION)..=most).rev().find(|at| !continues(*at));
    end.filter(|at| *at > 0).unwrap_or(most)
}
