//! The place in the log up to which a line has sent it.

use core_log::LogRing;

/// Copies `bytes` to the start of `out`, which is long enough; what is left of it.
fn put<'a>(out: &'a mut [u8], bytes: &[u8]) -> &'a mut [u8] {
    match out.split_at_mut_checked(bytes.len()) {
        Some((to, left)) => {
            to.copy_from_slice(bytes);
            left
        }
        None => &mut [],
    }
}

/// The place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drain {
    at: u64,
    /// A line end of which half is sent.
    owes_line_feed: bool,
    lost: u64,
}

impl Drain {
    /// The start of the log.
    pub const fn new() -> Drain {
        Drain { at: 0, owes_line_feed: false, lost: 0 }
    }

    /// Puts the next bytes for the line into `out`, with the line ends a terminal wants; how many.
    pub fn take(&mut self, log: &LogRing<'_>, out: &mut [u8]) -> usize {
        let tail = log.read_from(self.at);
        self.at += tail.lost;
        self.lost += tail.lost;
        let space = out.len();
        let mut left = out;
        for mut text in tail.pieces {
            while !left.is_empty() && (self.owes_line_feed || !text.is_empty()) {
                if self.owes_line_feed {
                    self.owes_line_feed = false;
                    left = put(left, b"\n");
                    continue;
                }
                // Up to a line end all at once.
                let fits = text.get(..left.len()).unwrap_or(text);
                let plain = fits.iter().position(|byte| *byte == b'\n').unwrap_or(fits.len());
                let (sent, rest) = text.split_at_checked(plain).unwrap_or((text, &[]));
                left = put(left, sent);
                self.at += sent.len() as u64;
                text = rest;
                if let (Some((b'\n', rest)), false) = (text.split_first(), left.is_empty()) {
                    left = put(left, b"\r");
                    self.at += 1;
                    self.owes_line_feed = true;
                    text = rest;
                }
            }
        }
        space - left.len()
    }

    /// How much of the log is sent.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Whether everything is sent.
    pub const fn is_done(&self, log: &LogRing<'_>) -> bool {
        self.at == log.end() && !self.owes_line_feed
    }

    /// How many bytes the log takes before it overwrites some that are not sent.
    pub const fn room(&self, log: &LogRing<'_>) -> usize {
        let waiting = log.end() - self.at;
        (log.capacity() as u64).saturating_sub(waiting) as usize
    }

    /// Bytes that were overwritten before they were sent.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Gives up what waits: nobody is to see it.
    pub const fn skip(&mut self, log: &LogRing<'_>) {
        self.at = log.end();
        self.owes_line_feed = false;
    }
}
