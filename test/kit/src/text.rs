//! Text of bounded length, formatted without allocation.

use abi_report::TEXT_MAX;
use core::fmt;

/// Formatted text, cut to what a record can carry.
pub(crate) struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
    cut: bool,
}

/// Stands at the end of text that was cut.
const MARK: &str = "…";

impl Text {
    pub(crate) fn new(arguments: fmt::Arguments<'_>) -> Text {
        let mut text = Text { bytes: [0; TEXT_MAX], len: 0, cut: false };
        // The writer below never fails; an error of a Display inside leaves a shorter text.
        let _ = fmt::write(&mut text, arguments);
        text
    }

    pub(crate) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }

    fn push(&mut self, text: &str) {
        self.bytes[self.len..self.len + text.len()].copy_from_slice(text.as_bytes());
        self.len += text.len();
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.cut {
            return Ok(());
        }
        let room = TEXT_MAX - MARK.len() - self.len;
        if text.len() <= room {
            self.push(text);
        } else {
            self.push(&text[..text.floor_char_boundary(room)]);
            self.push(MARK);
            self.cut = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    #[test]
    fn long_text_ends_with_a_mark() {
        for prefix in 0..3 {
            let long = "é".repeat(300);
            let text = Text::new(format_args!("{:prefix$}{long}{long}", ""));
            assert!(text.as_str().ends_with("é…"), "{}", text.as_str());
            assert!(text.as_str().len() > TEXT_MAX - 3);
        }
        assert_eq!(Text::new(format_args!("{}-{}", 1, 2)).as_str(), "1-2");
        let just = "x".repeat(TEXT_MAX - MARK.len());
        assert_eq!(Text::new(format_args!("{just}")).as_str(), just);
    }
}
