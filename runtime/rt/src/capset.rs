//! The capabilities a process starts with, by name.
//!
//! The kernel writes the page; a program asks by name and says which interface it means, so that
//! a manifest that grants something else is found at the start and not at the first call.

use core::fmt;

use abi_types::{CapSetEntry, CapSlot};

/// The bootstrap capabilities.
#[derive(Clone, Copy, Debug)]
pub struct CapSet {
    entries: &'static [CapSetEntry],
}

/// Why a capability is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoCap {
    /// The manifest grants nothing of this name.
    NotGranted(&'static str),
    /// What has this name is of another interface.
    OtherInterface {
        /// The name.
        name: &'static str,
        /// The interface the program means.
        expected: u64,
        /// The interface the capability has.
        found: u64,
    },
    /// The manifest grants nothing of this interface.
    NoInterface(u64),
}

impl CapSet {
    /// No capabilities.
    pub const EMPTY: Self = Self { entries: &[] };

    /// The capabilities in these entries.
    pub const fn new(entries: &'static [CapSetEntry]) -> Self {
        Self { entries }
    }

    /// The page the kernel mapped at `address`, as R8 at entry says it; 0 for none.
    ///
    /// # Safety
    /// `address` is 0 or that of a CapSet page, mapped and unchanged as long as the program runs.
    #[cfg(target_os = "none")]
    pub unsafe fn at(address: u64) -> Self {
        use abi_types::{CAPSET_MAGIC, CapSetHeader};
        const PAGE_BYTES: usize = 4096;
        const MOST: usize = (PAGE_BYTES - size_of::<CapSetHeader>()) / size_of::<CapSetEntry>();
        let header = core::ptr::with_exposed_provenance::<CapSetHeader>(address as usize);
        // SAFETY: by the caller null or a page that begins with a header.
        let Some(found) = (unsafe { header.as_ref() }) else { return Self::EMPTY };
        if found.magic != CAPSET_MAGIC {
            return Self::EMPTY;
        }
        let count = (found.count as usize).min(MOST);
        // SAFETY: the entries follow the header in the same page, `count` of them at most.
        let entries =
            unsafe { core::slice::from_raw_parts(header.add(1).cast::<CapSetEntry>(), count) };
        Self { entries }
    }

    /// The capability called `name`, if it is of interface `interface`.
    pub fn find(&self, name: &'static str, interface: u64) -> Result<CapSlot, NoCap> {
        let entry = self
            .entries
            .iter()
            .find(|entry| name_of(entry) == name.as_bytes())
            .ok_or(NoCap::NotGranted(name))?;
        if entry.interface != interface {
            return Err(NoCap::OtherInterface {
                name,
                expected: interface,
                found: entry.interface,
            });
        }
        Ok(CapSlot::from_bits(entry.slot))
    }

    /// The capability called `name`, whatever its interface.
    pub fn named(&self, name: &str) -> Option<CapSlot> {
        let entry = self.entries.iter().find(|entry| name_of(entry) == name.as_bytes())?;
        Some(CapSlot::from_bits(entry.slot))
    }

    /// Every capability with its name, in the order of the manifest. A name that is no text is empty.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, CapSlot)> + use<> {
        self.entries.iter().map(|entry| {
            let name = core::str::from_utf8(name_of(entry)).unwrap_or_default();
            (name, CapSlot::from_bits(entry.slot))
        })
    }

    /// The first capability of interface `interface`, whatever its name.
    pub fn first(&self, interface: u64) -> Result<CapSlot, NoCap> {
        let entry = self.entries.iter().find(|entry| entry.interface == interface);
        entry.map(|entry| CapSlot::from_bits(entry.slot)).ok_or(NoCap::NoInterface(interface))
    }
}

fn name_of(entry: &CapSetEntry) -> &[u8] {
    entry.name.get(..entry.name_length as usize).unwrap_or_default()
}

impl fmt::Display for NoCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted(name) => {
                write!(f, "no capability called {name}: the manifest must grant one")
            }
            Self::OtherInterface { name, expected, found } => write!(
                f,
                "the capability {name} is of interface {found:#x}; the program means {expected:#x}"
            ),
            Self::NoInterface(interface) => {
                write!(f, "no capability of interface {interface:#x}: the manifest must grant one")
            }
        }
    }
}

impl core::error::Error for NoCap {}

#[cfg(test)]
mod tests {
    use super::*;
    use abi_types::CAPSET_NAME_BYTES;
    use std::boxed::Box;

    fn entry(name: &str, slot: u64, interface: u64) -> CapSetEntry {
        let mut bytes = [0; CAPSET_NAME_BYTES];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        CapSetEntry { slot, interface, name_length: name.len() as u32, name: bytes }
    }

    #[test]
    fn a_capability_has_the_name_and_the_interface() {
        let entries =
            [entry("timer", 1 << 32, 7), entry("time", 1 << 32 | 1, 8), entry("t2", 2, 7)];
        let set = CapSet::new(Box::leak(Box::new(entries)));
        assert_eq!(set.find("timer", 7), Ok(CapSlot::new(0, 1)));
        assert_eq!(set.find("time", 8), Ok(CapSlot::new(1, 1)));
        assert_eq!(
            set.find("time", 7),
            Err(NoCap::OtherInterface { name: "time", expected: 7, found: 8 })
        );
        assert_eq!(set.find("tim", 7), Err(NoCap::NotGranted("tim")));
        assert_eq!(set.first(8), Ok(CapSlot::new(1, 1)));
        assert_eq!(set.first(9), Err(NoCap::NoInterface(9)));
        let all: std::vec::Vec<_> = set.iter().map(|(name, slot)| (name, slot.to_bits())).collect();
        assert_eq!(all, [("timer", 1 << 32), ("time", 1 << 32 | 1), ("t2", 2)]);
        assert_eq!(CapSet::EMPTY.first(7), Err(NoCap::NoInterface(7)));
    }

    #[test]
    fn a_name_longer_than_its_field_names_nothing() {
        let mut bad = entry("x", 1, 1);
        bad.name_length = 1000;
        let set = CapSet::new(Box::leak(Box::new([bad])));
        assert!(set.find("x", 1).is_err());
    }
}
