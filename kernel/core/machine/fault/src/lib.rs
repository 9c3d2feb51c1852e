//! CPU exceptions in words: what the vector is called and what the error code says.
//!
//! Vectors and error codes: Intel SDM vol. 3, chapter 6 (table 6-1, 6.13, 6.15) and 4.7.
#![no_std]

use core::fmt;

/// An exception's vector, 0 to 31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector(pub u8);

impl Vector {
    /// #DE.
    pub const DIVIDE: Vector = Vector(0);
    /// #DB.
    pub const DEBUG: Vector = Vector(1);
    /// Non-maskable interrupt.
    pub const NMI: Vector = Vector(2);
    /// #BP.
    pub const BREAKPOINT: Vector = Vector(3);
    /// #UD.
    pub const INVALID_OPCODE: Vector = Vector(6);
    /// #DF.
    pub const DOUBLE_FAULT: Vector = Vector(8);
    /// #GP.
    pub const GENERAL_PROTECTION: Vector = Vector(13);
    /// #PF.
    pub const PAGE_FAULT: Vector = Vector(14);
    /// #MC.
    pub const MACHINE_CHECK: Vector = Vector(18);

    /// Its mnemonic and its name.
    pub const fn name(self) -> (&'static str, &'static str) {
        match self.0 {
            0 => ("#DE", "divide error"),
            1 => ("#DB", "debug exception"),
            2 => ("NMI", "non-maskable interrupt"),
            3 => ("#BP", "breakpoint"),
            4 => ("#OF", "overflow"),
            5 => ("#BR", "bound range exceeded"),
            6 => ("#UD", "invalid opcode"),
            7 => ("#NM", "device not available"),
            8 => ("#DF", "double fault"),
            10 => ("#TS", "invalid TSS"),
            11 => ("#NP", "segment not present"),
            12 => ("#SS", "stack fault"),
            13 => ("#GP", "general protection"),
            14 => ("#PF", "page fault"),
            16 => ("#MF", "x87 floating-point error"),
            17 => ("#AC", "alignment check"),
            18 => ("#MC", "machine check"),
            19 => ("#XM", "SIMD floating-point exception"),
            20 => ("#VE", "virtualization exception"),
            21 => ("#CP", "control protection"),
            28 => ("#HV", "hypervisor injection"),
            29 => ("#VC", "VMM communication"),
            30 => ("#SX", "security exception"),
            9 | 15 | 22..=27 | 31 => ("#??", "reserved exception"),
            _ => ("INT", "interrupt"),
        }
    }

    /// Whether the CPU pushes an error code.
    pub const fn has_error_code(self) -> bool {
        matches!(self.0, 8 | 10..=14 | 17 | 21 | 29 | 30)
    }

    /// Bit n set for every vector n with an error code, for the entry stubs.
    pub const fn error_code_mask() -> u32 {
        let mut mask = 0;
        let mut vector = 0;
        while vector < 32 {
            if Vector(vector).has_error_code() {
                mask |= 1 << vector;
            }
            vector += 1;
        }
        mask
    }
}

/// What an error code says for its vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode {
    /// The exception it came with.
    pub vector: Vector,
    /// The code.
    pub code: u64,
}

const PF_PRESENT: u64 = 1 << 0;
const PF_WRITE: u64 = 1 << 1;
const PF_USER: u64 = 1 << 2;
const PF_RESERVED: u64 = 1 << 3;
const PF_FETCH: u64 = 1 << 4;
const PF_KEY: u64 = 1 << 5;
const PF_SHADOW_STACK: u64 = 1 << 6;

impl ErrorCode {
    /// Whether a page fault was a write.
    pub const fn is_write(self) -> bool {
        self.code & PF_WRITE != 0
    }

    /// Whether a page fault was an instruction fetch.
    pub const fn is_fetch(self) -> bool {
        self.code & PF_FETCH != 0
    }

    /// Whether a page fault hit a page that is mapped, so that its rights were the reason.
    pub const fn is_protection(self) -> bool {
        self.code & PF_PRESENT != 0
    }

    /// Whether the access came from user mode.
    pub const fn is_user(self) -> bool {
        self.code & PF_USER != 0
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code;
        match self.vector {
            Vector::PAGE_FAULT => {
                let who = if self.is_user() { "user" } else { "kernel" };
                let what = match (self.is_fetch(), self.is_write()) {
                    (true, _) => "instruction fetch",
                    (false, true) => "write",
                    (false, false) => "read",
                };
                let why =
                    if self.is_protection() { "not allowed by the page" } else { "no page there" };
                write!(f, "{who} {what}, {why}")?;
                for (bit, text) in [
                    (PF_RESERVED, ", reserved bit set in a table"),
                    (PF_KEY, ", protection key"),
                    (PF_SHADOW_STACK, ", shadow stack access"),
                ] {
                    if code & bit != 0 {
                        f.write_str(text)?;
                    }
                }
                Ok(())
            }
            Vector(10..=13) if code != 0 => {
                let table = match code >> 1 & 3 {
                    0 => "GDT",
                    2 => "LDT",
                    _ => "IDT",
                };
                let external = if code & 1 != 0 { ", external event" } else { "" };
                write!(f, "{table} entry {}{external}", code >> 3 & 0x1fff)
            }
            _ if code == 0 => f.write_str("none"),
            _ => write!(f, "{code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::string::ToString;

    fn page_fault(code: u64) -> std::string::String {
        ErrorCode { vector: Vector::PAGE_FAULT, code }.to_string()
    }

    #[test]
    fn page_faults_read_as_sentences() {
        assert_eq!(page_fault(0), "kernel read, no page there");
        assert_eq!(page_fault(3), "kernel write, not allowed by the page");
        assert_eq!(page_fault(0x11), "kernel instruction fetch, not allowed by the page");
        assert_eq!(page_fault(6), "user write, no page there");
        assert_eq!(
            page_fault(9),
            "kernel read, not allowed by the page, reserved bit set in a table"
        );
    }

    #[test]
    fn selectors_name_their_table() {
        let gp = |code| ErrorCode { vector: Vector::GENERAL_PROTECTION, code }.to_string();
        assert_eq!(gp(0), "none");
        assert_eq!(gp(0x28), "GDT entry 5");
        assert_eq!(gp(0x1f2), "IDT entry 62");
        assert_eq!(gp(0x2d), "LDT entry 5, external event");
    }

    #[test]
    fn error_codes_are_those_of_the_manual() {
        let with: std::vec::Vec<u8> = (0..32).filter(|v| Vector(*v).has_error_code()).collect();
        assert_eq!(with, [8, 10, 11, 12, 13, 14, 17, 21, 29, 30]);
        assert_eq!(Vector::error_code_mask(), with.iter().map(|v| 1 << v).sum::<u32>());
    }

    #[test]
    fn every_vector_has_a_name() {
        for vector in 0..=255 {
            let (short, long) = Vector(vector).name();
            assert!(short.len() == 3 && !long.is_empty());
        }
        assert_eq!(Vector::PAGE_FAULT.name(), ("#PF", "page fault"));
    }
}
