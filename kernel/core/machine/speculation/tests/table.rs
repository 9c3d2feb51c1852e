//! CPUs as they describe themselves, and what is decided for each. None of them was run on: the words are
//! those that their makers' manuals and public listings of CPUID give.

use core_speculation::{
    Branches, Facts, Host, Meltdown, Mitigations, Refused, Vendor, Words, decide,
};

const INTEL: &str = "vendor:GenuineIntel";

fn facts(text: &str) -> Facts {
    Facts::of(&Words::parse(text).unwrap())
}

/// Name, words, family and model; branches, barrier, STIBP and Meltdown, or `None` if refused.
type Row = (&'static str, &'static str, (u32, u32), Option<(Branches, bool, bool, Meltdown)>);

#[rustfmt::skip]
const CPUS: [Row; 18] = [
    ("Nehalem", "vendor:GenuineIntel,signature:106a3", (6, 0x1a), None),
    ("Nehalem, new microcode", "vendor:GenuineIntel,signature:106a5,edx7:c000000", (6, 0x1a), None),
    ("Skylake", "vendor:GenuineIntel,signature:506e3,edx7:9c000000,siblings:1", (6, 0x5e), None),
    ("Coffee Lake", "vendor:GenuineIntel,signature:906ea,edx7:9c000000", (6, 0x9e), None),
    ("Pentium 4", "vendor:GenuineIntel,signature:f4a", (15, 4), None),
    ("Goldmont", "vendor:GenuineIntel,signature:506c9,edx7:2c000000,caps:0", (6, 0x5c), None),
    ("Zhaoxin", "vendor:__Shanghai__,signature:7b0", (7, 0xb), None),
    ("an unknown maker", "vendor:SomebodyElse,signature:600", (6, 0), None),
    ("nothing at all", "signature:0", (0, 0), None),
    ("Bonnell", "vendor:GenuineIntel,signature:106c2,siblings:1", (6, 0x1c), Some((Branches::Open, false, false, Meltdown::KnownNot))),
    ("Cascade Lake", "vendor:GenuineIntel,signature:50657,edx7:bc000400,caps:2b,siblings:1", (6, 0x55), Some((Branches::LastingIbrs, true, false, Meltdown::SaidNot))),
    ("Ice Lake, no caps but RDCL_NO", "vendor:GenuineIntel,signature:606a6,edx7:bc000000,caps:1,siblings:1", (6, 0x6a), Some((Branches::Open, true, true, Meltdown::SaidNot))),
    ("Opteron", "vendor:AuthenticAMD,signature:f5a", (15, 5), Some((Branches::Open, false, false, Meltdown::KnownNot))),
    ("Zen 1", "vendor:AuthenticAMD,signature:800f12,ebx8:1007,siblings:1", (0x17, 1), Some((Branches::Open, true, false, Meltdown::KnownNot))),
    ("Zen 3", "vendor:AuthenticAMD,signature:a20f10,ebx8:111ef657,siblings:1", (0x19, 0x21), Some((Branches::Open, true, true, Meltdown::KnownNot))),
    ("AMD, IBRS always on", "vendor:AuthenticAMD,signature:a20f10,ebx8:1d000,siblings:1", (0x19, 0x21), Some((Branches::LastingIbrs, true, false, Meltdown::KnownNot))),
    ("Zen 4", "vendor:AuthenticAMD,signature:a10f11,ebx8:791ef257,eax21:100,siblings:1", (0x19, 0x11), Some((Branches::AutomaticIbrs, true, true, Meltdown::KnownNot))),
    ("Hygon", "vendor:HygonGenuine,signature:900f01,ebx8:1007", (0x18, 0), Some((Branches::Open, true, false, Meltdown::KnownNot))),
];

#[test]
fn each_cpu_is_decided_for_as_its_row_says() {
    for (name, words, (family, model), expected) in CPUS {
        let facts = facts(words);
        assert_eq!((facts.family, facts.model), (family, model), "{name}");
        let decided = decide(&facts, Mitigations::Auto);
        match expected {
            None => assert_eq!(decided, Err(Refused { family, model }), "{name}"),
            Some(row) => {
                let plan = decided.unwrap_or_else(|refused| panic!("{name}: {refused}"));
                let found = (plan.branches, plan.has_barrier, plan.has_stibp, plan.meltdown);
                assert_eq!(found, row, "{name}");
            }
        }
    }
}

#[test]
fn no_cpu_is_refused_and_nothing_is_on_with_mitigations_off() {
    for (name, words, ..) in CPUS {
        let plan = decide(&facts(words), Mitigations::Off).unwrap();
        assert_eq!((plan.branches, plan.spec_ctrl()), (Branches::Open, None), "{name}");
        assert!(!plan.has_barrier && !plan.has_stibp && !plan.has_automatic_ibrs(), "{name}");
        let said = plan.to_string();
        assert!(said.starts_with("mitigations=off: "), "{said}");
        assert_eq!(said.contains("PROGRAMS CAN READ"), plan.meltdown == Meltdown::Affected);
    }
}

#[test]
fn an_emulated_cpu_is_not_refused_and_a_virtual_one_is_judged_by_its_model() {
    for (name, words, _, on_its_own) in CPUS {
        let emulated = facts(&format!("{words},hypervisor:TCGTCGTCGTCG"));
        assert_eq!(emulated.host, Host::Emulator);
        assert_eq!(decide(&emulated, Mitigations::Auto).unwrap().meltdown, Meltdown::Emulated);
        let virtual_one = facts(&format!("{words},hypervisor:KVMKVMKVM"));
        assert_eq!(virtual_one.host, Host::Hypervisor);
        let decided = decide(&virtual_one, Mitigations::Auto);
        assert_eq!(decided.is_ok(), on_its_own.is_some(), "{name}");
    }
}

/// Every combination of what the decision looks at, against the rules said one by one.
#[test]
fn every_combination_keeps_the_rules() {
    let mut count = 0;
    for bits in 0..1_u32 << 7 {
        let bit = |n: u32| bits >> n & 1 == 1;
        for vendor in [Vendor::Intel, Vendor::Amd, Vendor::Zhaoxin, Vendor::Other] {
            for host in [Host::Bare, Host::Emulator, Host::Hypervisor] {
                let facts = Facts {
                    vendor,
                    family: 6,
                    model: if bit(0) { 0x1c } else { 0x5e },
                    host,
                    has_lasting_ibrs: bit(1),
                    has_automatic_ibrs: bit(2),
                    has_ibpb: bit(3),
                    has_stibp: bit(4),
                    has_siblings: bit(5),
                    has_rdcl_no: bit(6),
                };
                let is_safe = host == Host::Emulator
                    || bit(6)
                    || vendor == Vendor::Amd
                    || vendor == Vendor::Intel && bit(0);
                let decided = decide(&facts, Mitigations::Auto);
                assert_eq!(decided.is_ok(), is_safe, "{facts:?}");
                let Ok(plan) = decided else { continue };
                count += 1;
                assert_eq!(plan.has_barrier, bit(3));
                assert_eq!(plan.branches == Branches::Open, !bit(1) && !bit(2));
                // Bits are set only where the CPU has them.
                let bits = plan.spec_ctrl().unwrap_or(0);
                assert!(bits & 1 == 0 || bit(1));
                assert!(bits & 2 == 0 || bit(4) && bit(5));
                assert_eq!(plan.has_automatic_ibrs(), bit(2));
                // A sibling is kept out by one or the other, where there is one and the CPU can.
                assert!(!bit(5) || !bit(4) || bits != 0, "{facts:?}");
            }
        }
    }
    assert_eq!(count, 128 * 4 + 2 * (64 * 4 + 64 + 32), "decisions that were looked at");
}

#[test]
fn words_that_make_no_sense_are_refused() {
    for wrong in [
        "",
        "vendor",
        "vendor:GenuineIntelX",
        "signature:xyz",
        "signature:123456789",
        "edx7:-1",
        "caps:g",
        "colour:1",
        "vendor:GenuineIntel,",
    ] {
        let error = Words::parse(wrong).unwrap_err();
        assert!(error.to_string().contains("signature:506e3"), "{wrong}");
    }
    assert_eq!(&Words::parse(INTEL).unwrap().vendor, b"GenuineIntel");
}

#[test]
fn a_refusal_says_what_would_do() {
    let said = Refused { family: 6, model: 94 }.to_string();
    for part in ["Meltdown", "family 6", "model 94", "RDCL_NO", "mitigations=off"] {
        assert!(said.contains(part), "{said}");
    }
}
