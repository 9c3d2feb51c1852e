//! The words a CPU answers with, and their form on the command line.

use core::fmt;

/// CPUID and MSR words. What a CPU does not have reads as zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Words {
    /// Leaf 0: the vendor's twelve letters.
    pub vendor: [u8; 12],
    /// Leaf 1, EAX: family, model, stepping.
    pub signature: u32,
    /// Leaf 4000_0000h: the hypervisor's twelve letters; zero without one.
    pub hypervisor: [u8; 12],
    /// Leaf 7, EDX.
    pub edx7: u32,
    /// Leaf 8000_0008h, EBX.
    pub ebx8: u32,
    /// Leaf 8000_0021h, EAX.
    pub eax21: u32,
    /// IA32_ARCH_CAPABILITIES.
    pub capabilities: u64,
    /// Whether cores have more than one thread.
    pub has_siblings: bool,
}

/// A part of planted words that is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadWords;

impl fmt::Display for BadWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "cpuid= takes parts such as vendor:GenuineIntel,signature:506e3,edx7:c000000, and hypervisor, \
             ebx8, eax21, caps, siblings",
        )
    }
}

impl Words {
    /// Words as `key:value` parts separated by commas; numbers are hexadecimal, the rest is zero.
    pub fn parse(text: &str) -> Result<Words, BadWords> {
        let mut words = Words::default();
        for part in text.split(',') {
            let (key, value) = part.split_once(':').ok_or(BadWords)?;
            match key {
                "vendor" => words.vendor = letters(value)?,
                "hypervisor" => words.hypervisor = letters(value)?,
                "signature" => words.signature = number(value)?,
                "edx7" => words.edx7 = number(value)?,
                "ebx8" => words.ebx8 = number(value)?,
                "eax21" => words.eax21 = number(value)?,
                "caps" => {
                    words.capabilities = u64::from_str_radix(value, 16).map_err(|_| BadWords)?
                }
                "siblings" => words.has_siblings = number(value)? != 0,
                _ => return Err(BadWords),
            }
        }
        Ok(words)
    }
}

fn number(text: &str) -> Result<u32, BadWords> {
    u32::from_str_radix(text, 16).map_err(|_| BadWords)
}

/// Up to twelve letters, filled up with zeros. An underscore stands for a blank.
fn letters(text: &str) -> Result<[u8; 12], BadWords> {
    if text.len() > 12 {
        return Err(BadWords);
    }
    let mut letters = [0; 12];
    for (to, from) in letters.iter_mut().zip(text.bytes()) {
        *to = if from == b'_' { b' ' } else { from };
    }
    Ok(letters)
}
