//! The decision.

use crate::{Facts, Host, SPEC_CTRL_IBRS, SPEC_CTRL_STIBP, Vendor};
use core::fmt;

/// What the command line says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mitigations {
    /// `mitigations=auto`: what the CPU has and needs.
    #[default]
    Auto,
    /// `mitigations=off`: nothing that is decided here, and no CPU is refused.
    Off,
}

/// Whether user mode can read the kernel's memory while it speculates (Meltdown, CVE-2017-5754).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meltdown {
    /// The CPU says that it cannot (RDCL_NO).
    SaidNot,
    /// CPUs of this vendor and model cannot.
    KnownNot,
    /// The CPU is a program of the emulator's.
    Emulated,
    /// It can, or nobody says that it cannot.
    Affected,
}

/// What keeps user mode from steering indirect branches of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Branches {
    /// Nothing.
    Open,
    /// IBRS, set once.
    LastingIbrs,
    /// Automatic IBRS, a bit of EFER.
    AutomaticIbrs,
}

/// What is turned on, on each CPU as it comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct Plan {
    /// Whether anything was to be turned on.
    pub mitigations: Mitigations,
    /// Indirect branches of the kernel.
    pub branches: Branches,
    /// Predictions are forgotten when a CPU goes from one process to another (IBPB).
    pub has_barrier: bool,
    /// Sibling threads do not steer each other (STIBP).
    pub has_stibp: bool,
    /// Meltdown.
    pub meltdown: Meltdown,
}

/// The CPU lets user mode read the kernel's memory, and the kernel has no second set of page tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// Its family.
    pub family: u32,
    /// Its model.
    pub model: u32,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refused { family, model } = self;
        write!(
            f,
            "programs could read the kernel's memory on this CPU (Meltdown; family {family}, model {model}, \
             without RDCL_NO). A CPU that says RDCL_NO would do; mitigations=off on the command line runs \
             it as it is"
        )
    }
}

/// Models of Intel's family 6 that carry out instructions in order and so speculate on no load: Bonnell
/// and Saltwell.
const IN_ORDER_ATOMS: [u32; 5] = [0x1c, 0x26, 0x27, 0x35, 0x36];

fn meltdown(facts: &Facts) -> Meltdown {
    match facts {
        Facts { host: Host::Emulator, .. } => Meltdown::Emulated,
        Facts { has_rdcl_no: true, .. } => Meltdown::SaidNot,
        Facts { vendor: Vendor::Amd, .. } => Meltdown::KnownNot,
        Facts { vendor: Vendor::Intel, family: 6, model, .. } if IN_ORDER_ATOMS.contains(model) => {
            Meltdown::KnownNot
        }
        // A vendor that nothing is known about is taken for one whose CPUs are affected.
        _ => Meltdown::Affected,
    }
}

/// What the kernel does on such a CPU.
pub fn decide(facts: &Facts, mitigations: Mitigations) -> Result<Plan, Refused> {
    let meltdown = meltdown(facts);
    if mitigations == Mitigations::Off {
        let branches = Branches::Open;
        return Ok(Plan { mitigations, branches, has_barrier: false, has_stibp: false, meltdown });
    }
    if meltdown == Meltdown::Affected {
        return Err(Refused { family: facts.family, model: facts.model });
    }
    // The bit of EFER goes first where there are both: it does not restrict user mode, which is what makes
    // it the cheaper one.
    let branches = if facts.has_automatic_ibrs {
        Branches::AutomaticIbrs
    } else if facts.has_lasting_ibrs {
        Branches::LastingIbrs
    } else {
        Branches::Open
    };
    // IBRS that stays set covers the sibling as well; the bit of EFER covers the kernel alone.
    let has_stibp = facts.has_stibp && facts.has_siblings && branches != Branches::LastingIbrs;
    Ok(Plan { mitigations, branches, has_barrier: facts.has_ibpb, has_stibp, meltdown })
}

impl Plan {
    /// What IA32_SPEC_CTRL is set to; `None` leaves it as it is.
    pub const fn spec_ctrl(&self) -> Option<u64> {
        let ibrs = if matches!(self.branches, Branches::LastingIbrs) { SPEC_CTRL_IBRS } else { 0 };
        let stibp = if self.has_stibp { SPEC_CTRL_STIBP } else { 0 };
        match ibrs | stibp {
            0 => None,
            bits => Some(bits),
        }
    }

    /// Whether EFER's bit is set.
    pub const fn has_automatic_ibrs(&self) -> bool {
        matches!(self.branches, Branches::AutomaticIbrs)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mitigations == Mitigations::Off {
            f.write_str("mitigations=off: ")?;
        }
        let on = |is_on: bool| if is_on { "on" } else { "off" };
        f.write_str(match self.branches {
            Branches::Open => "indirect branches of the kernel not restricted",
            Branches::LastingIbrs => "enhanced IBRS on",
            Branches::AutomaticIbrs => "automatic IBRS on",
        })?;
        write!(f, ", IBPB between processes {}, ", on(self.has_barrier))?;
        write!(f, "STIBP {}, SSBD off; Meltdown: ", on(self.has_stibp))?;
        f.write_str(match self.meltdown {
            Meltdown::SaidNot => "not affected, as the CPU says (RDCL_NO)",
            Meltdown::KnownNot => "not affected, as CPUs of this kind are not",
            Meltdown::Emulated => "not affected, as the CPU is emulated",
            Meltdown::Affected => "PROGRAMS CAN READ THE KERNEL'S MEMORY",
        })
    }
}
