//! What the CPU can do, from CPUID.

use core::fmt;
use core_topology::{Level, Shifts};
use raw_cpuid::{CpuId, CpuIdReaderNative, TopologyType};

/// What this kernel asks about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Features {
    /// No-execute pages.
    pub nx: bool,
    /// Supervisor-mode execution prevention.
    pub smep: bool,
    /// Supervisor-mode access prevention.
    pub smap: bool,
    /// User-mode instruction prevention.
    pub umip: bool,
    /// Global pages.
    pub pge: bool,
    /// 1 GiB pages.
    pub huge_pages: bool,
    /// A local APIC.
    pub apic: bool,
    /// The x2APIC.
    pub x2apic: bool,
    /// One-shot timer by time-stamp deadline.
    pub tsc_deadline: bool,
    /// A time-stamp counter that runs at one rate in every power state.
    pub invariant_tsc: bool,
    /// A register that is added to the time-stamp counter.
    pub tsc_adjust: bool,
    /// RDTSCP.
    pub rdtscp: bool,
    /// RDRAND.
    pub rdrand: bool,
    /// RDSEED.
    pub rdseed: bool,
    /// XSAVE.
    pub xsave: bool,
    /// XSAVEOPT.
    pub xsaveopt: bool,
    /// XSAVEC.
    pub xsavec: bool,
    /// AVX.
    pub avx: bool,
    /// Process-context identifiers.
    pub pcid: bool,
    /// FS and GS base instructions.
    pub fsgsbase: bool,
    /// Machine-check exceptions.
    pub mce: bool,
    /// Page attribute table.
    pub pat: bool,
}

impl Features {
    /// Asks the CPU this runs on.
    pub fn detect() -> Features {
        let id = CpuId::new();
        let basic = id.get_feature_info();
        let basic = basic.as_ref();
        let extended = id.get_extended_feature_info();
        let extended = extended.as_ref();
        let processor = id.get_extended_processor_and_feature_identifiers();
        let processor = processor.as_ref();
        let state = id.get_extended_state_info();
        let state = state.as_ref();
        Features {
            nx: processor.is_some_and(|f| f.has_execute_disable()),
            smep: extended.is_some_and(|f| f.has_smep()),
            smap: extended.is_some_and(|f| f.has_smap()),
            umip: extended.is_some_and(|f| f.has_umip()),
            pge: basic.is_some_and(|f| f.has_pge()),
            huge_pages: processor.is_some_and(|f| f.has_1gib_pages()),
            apic: basic.is_some_and(|f| f.has_apic()),
            x2apic: basic.is_some_and(|f| f.has_x2apic()),
            tsc_deadline: basic.is_some_and(|f| f.has_tsc_deadline()),
            invariant_tsc: id.get_advanced_power_mgmt_info().is_some_and(|f| f.has_invariant_tsc()),
            tsc_adjust: extended.is_some_and(|f| f.has_tsc_adjust_msr()),
            rdtscp: processor.is_some_and(|f| f.has_rdtscp()),
            rdrand: basic.is_some_and(|f| f.has_rdrand()),
            rdseed: extended.is_some_and(|f| f.has_rdseed()),
            xsave: basic.is_some_and(|f| f.has_xsave()),
            xsaveopt: state.is_some_and(|f| f.has_xsaveopt()),
            xsavec: state.is_some_and(|f| f.has_xsavec()),
            avx: basic.is_some_and(|f| f.has_avx()),
            pcid: basic.is_some_and(|f| f.has_pcid()),
            fsgsbase: extended.is_some_and(|f| f.has_fsgsbase()),
            mce: basic.is_some_and(|f| f.has_mce()),
            pat: basic.is_some_and(|f| f.has_pat()),
        }
    }

    fn list(&self) -> [(&'static str, bool); 22] {
        [
            ("nx", self.nx),
            ("smep", self.smep),
            ("smap", self.smap),
            ("umip", self.umip),
            ("pge", self.pge),
            ("1gib-pages", self.huge_pages),
            ("apic", self.apic),
            ("x2apic", self.x2apic),
            ("tsc-deadline", self.tsc_deadline),
            ("invariant-tsc", self.invariant_tsc),
            ("tsc-adjust", self.tsc_adjust),
            ("rdtscp", self.rdtscp),
            ("rdrand", self.rdrand),
            ("rdseed", self.rdseed),
            ("xsave", self.xsave),
            ("xsaveopt", self.xsaveopt),
            ("xsavec", self.xsavec),
            ("avx", self.avx),
            ("pcid", self.pcid),
            ("fsgsbase", self.fsgsbase),
            ("mce", self.mce),
            ("pat", self.pat),
        ]
    }

    /// Those it has not.
    pub fn missing(&self) -> impl Iterator<Item = &'static str> {
        self.list().into_iter().filter(|(_, has)| !has).map(|(name, _)| name)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut space = "";
        for (name, _) in self.list().into_iter().filter(|(_, has)| *has) {
            write!(f, "{space}{name}")?;
            space = " ";
        }
        Ok(())
    }
}

/// The CPU's name as it says it, or its vendor's.
pub(crate) fn with_name(print: impl FnOnce(&str)) {
    let id = CpuId::new();
    match id.get_processor_brand_string() {
        Some(brand) => print(brand.as_str().trim()),
        None => print(id.get_vendor_info().as_ref().map_or("unknown CPU", |v| v.as_str())),
    }
}

impl Features {
    /// Calls `print` with the name of the CPU this runs on.
    pub fn with_cpu_name(print: impl FnOnce(&str)) {
        with_name(print);
    }
}

/// How this CPU's APIC id divides into package, core and thread.
pub(crate) fn topology_shifts() -> Shifts {
    let id = CpuId::new();
    let levels = |leaf: Option<raw_cpuid::ExtendedTopologyIter<CpuIdReaderNative>>| {
        Shifts::from_levels(leaf?.map(|level| Level {
            is_thread: level.level_type() == TopologyType::SMT,
            shift: level.shift_right_for_next_apic_id(),
        }))
    };
    levels(id.get_extended_topology_info_v2())
        .or_else(|| levels(id.get_extended_topology_info()))
        .unwrap_or_else(|| {
            let has_threads = id.get_feature_info().is_some_and(|f| f.has_htt());
            let logical = id.get_feature_info().map_or(1, |f| f.max_logical_processor_ids());
            let cores =
                id.get_processor_capacity_feature_info().map_or(1, |f| f.num_phys_threads() as u32);
            Shifts::from_counts(if has_threads { logical.into() } else { 1 }, cores)
        })
}

/// The frequency of the time-stamp counter, if CPUID states it (leaf 15h).
pub(crate) fn stated_tsc_hz() -> Option<u64> {
    CpuId::new().get_tsc_info()?.tsc_frequency()
}

/// This CPU's APIC id as CPUID gives it, before the APIC is set up.
pub(crate) fn initial_apic_id() -> u32 {
    let id = CpuId::new();
    id.get_extended_topology_info()
        .and_then(|mut levels| levels.next())
        .map(|level| level.x2apic_id())
        .or_else(|| id.get_feature_info().map(|f| f.initial_local_apic_id().into()))
        .unwrap_or(0)
}
