//! The emulator's log (`-d in_asm,exec,nochain`) as blocks.
//!
//! A block is listed with its instructions when it is translated, just before it is first executed;
//! each execution is a line with the translation's address:
//!
//! ```text
//! IN:
//! 0x00201000:  48 b9 00 00 00 00 00 00  movabsq  $0x8000000000000000, %rcx
//! 0x00201008:  00 80
//! 0x0020100a:  0f 05                    syscall
//!
//! Trace 0: 0x7f6dc8000100 [00000000/0000000000201000/18c0c2b3/ff022200]
//! ```

use std::io::{self, BufRead};

/// One instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it is.
    pub address: u64,
    /// What it is.
    pub bytes: Vec<u8>,
}

/// What happens in a log.
pub trait Visitor {
    /// A block was translated; `key` names it until the same key is translated again.
    fn translated(&mut self, key: u64, block: &[Instruction]);
    /// A block is executed.
    fn executed(&mut self, key: u64);
}

/// Reads a log to its end.
pub fn read(mut log: impl BufRead, visitor: &mut impl Visitor) -> io::Result<()> {
    let mut line = Vec::new();
    let mut block: Vec<Instruction> = Vec::new();
    loop {
        line.clear();
        if log.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(rest) = text.strip_prefix("Trace 0: 0x") {
            let key = rest.split(' ').next().unwrap_or_default();
            let key = u64::from_str_radix(key, 16).map_err(io::Error::other)?;
            if !block.is_empty() {
                visitor.translated(key, &block);
                block.clear();
            }
            visitor.executed(key);
        } else if text.starts_with("IN:") {
            block.clear();
        } else if let Some((address, bytes, is_whole)) = instruction(&text) {
            match block.last_mut() {
                // What does not fit a line goes on in the next, without a mnemonic.
                Some(last) if !is_whole => last.bytes.extend(bytes),
                _ => block.push(Instruction { address, bytes }),
            }
        }
    }
}

/// An instruction's line: address, bytes, and whether the mnemonic is there.
fn instruction(line: &str) -> Option<(u64, Vec<u8>, bool)> {
    let (address, rest) = line.strip_prefix("0x")?.split_once(':')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let is_byte = |word: &&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
    let words: Vec<&str> = rest.split_whitespace().collect();
    let bytes: Vec<u8> = words
        .iter()
        .take_while(|word| is_byte(word))
        .filter_map(|word| u8::from_str_radix(word, 16).ok())
        .collect();
    // A line has at most eight bytes, so a mnemonic that looks like one is not taken for it.
    let bytes: Vec<u8> = bytes.into_iter().take(8).collect();
    let is_whole = words.len() > bytes.len();
    (!bytes.is_empty()).then_some((address, bytes, is_whole))
}
