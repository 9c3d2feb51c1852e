//! What the words mean.

use crate::Words;

/// Who made the CPU, as far as the kernel tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vendor {
    /// GenuineIntel.
    Intel,
    /// AuthenticAMD and HygonGenuine.
    Amd,
    /// CentaurHauls and Shanghai.
    Zhaoxin,
    /// Another one.
    Other,
}

/// What the CPU runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// Nothing: no hypervisor shows itself.
    Bare,
    /// QEMU without a hypervisor: the CPU is a program, which carries out one instruction after the other.
    Emulator,
    /// A hypervisor: the words are what it lets through.
    Hypervisor,
}

/// A CPU as the decision sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Vendor.
    pub vendor: Vendor,
    /// Family, the extended one added.
    pub family: u32,
    /// Model, the extended one in front.
    pub model: u32,
    /// What it runs on.
    pub host: Host,
    /// IBRS stays in force once it is set, and costs nothing then.
    pub has_lasting_ibrs: bool,
    /// EFER has a bit that restricts indirect branches of the kernel.
    pub has_automatic_ibrs: bool,
    /// Predictions can be forgotten on demand.
    pub has_ibpb: bool,
    /// A thread can be kept from steering its sibling.
    pub has_stibp: bool,
    /// Cores have more than one thread.
    pub has_siblings: bool,
    /// The CPU says that user mode cannot read the kernel's memory.
    pub has_rdcl_no: bool,
}

// Leaf 7, EDX (Intel SDM vol. 2, CPUID).
const EDX7_IBRS_IBPB: u32 = 1 << 26;
const EDX7_STIBP: u32 = 1 << 27;
// Leaf 8000_0008h, EBX (AMD APM vol. 3, E.4.7).
const EBX8_IBPB: u32 = 1 << 12;
const EBX8_IBRS: u32 = 1 << 14;
const EBX8_STIBP: u32 = 1 << 15;
const EBX8_IBRS_ALWAYS_ON: u32 = 1 << 16;
// Leaf 8000_0021h, EAX (AMD APM vol. 3, E.4.17).
const EAX21_AUTOMATIC_IBRS: u32 = 1 << 8;
// IA32_ARCH_CAPABILITIES (Intel SDM vol. 4, 2.1).
const RDCL_NO: u64 = 1 << 0;
const IBRS_ALL: u64 = 1 << 1;

impl Facts {
    /// Reads them.
    pub fn of(words: &Words) -> Facts {
        let vendor = match &words.vendor {
            b"GenuineIntel" => Vendor::Intel,
            b"AuthenticAMD" | b"HygonGenuine" => Vendor::Amd,
            b"CentaurHauls" | b"  Shanghai  " => Vendor::Zhaoxin,
            _ => Vendor::Other,
        };
        let host = match &words.hypervisor {
            b"TCGTCGTCGTCG" => Host::Emulator,
            letters if letters.iter().all(|letter| *letter == 0) => Host::Bare,
            _ => Host::Hypervisor,
        };
        // Intel SDM vol. 2, CPUID, leaf 1: the extended model counts for families 6 and 15, the extended
        // family for 15. AMD has it so for 15 alone, and no model above 15 before.
        let base = words.signature >> 8 & 0xf;
        let family = if base == 0xf { base + (words.signature >> 20 & 0xff) } else { base };
        let low = words.signature >> 4 & 0xf;
        let model = if base == 0xf || base == 6 { words.signature >> 12 & 0xf0 | low } else { low };
        let has7 = |bit: u32| words.edx7 & bit != 0;
        let has8 = |bit: u32| words.ebx8 & bit != 0;
        let has_capability = |bit: u64| words.capabilities & bit != 0;
        let has_ibrs = has7(EDX7_IBRS_IBPB) || has8(EBX8_IBRS);
        Facts {
            vendor,
            family,
            model,
            host,
            has_lasting_ibrs: has_ibrs && (has_capability(IBRS_ALL) || has8(EBX8_IBRS_ALWAYS_ON)),
            has_automatic_ibrs: words.eax21 & EAX21_AUTOMATIC_IBRS != 0,
            has_ibpb: has7(EDX7_IBRS_IBPB) || has8(EBX8_IBPB),
            has_stibp: has7(EDX7_STIBP) || has8(EBX8_STIBP),
            has_siblings: words.has_siblings,
            has_rdcl_no: has_capability(RDCL_NO),
        }
    }
}
