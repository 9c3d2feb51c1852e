//! One process.

use core::ops::RangeInclusive;

use capnp::struct_list;
use core_ledger::Profile;
use schema::manifest_capnp::{self, process, resource_profile};

use crate::limits;
use crate::{Error, Grant, Name, grant};

/// A process to start.
#[derive(Clone, Copy)]
pub struct Process<'m> {
    /// Its name.
    pub name: &'m str,
    /// The boot module it is loaded from.
    pub binary: &'m str,
    /// Weight of its initial thread.
    pub weight: u16,
    /// Whether the system ends with it.
    pub is_essential: bool,
    /// What it may use.
    pub profile: Profile,
    grants: struct_list::Reader<'m, manifest_capnp::grant::Owned>,
}

impl<'m> Process<'m> {
    /// How many grants it has.
    pub fn grant_count(&self) -> u32 {
        self.grants.len()
    }

    /// Its grants, in slot order.
    pub fn grants(&self) -> impl Iterator<Item = Result<Grant<'m>, Error>> + use<'m> {
        let (grants, process) = (self.grants, self.name);
        (0..grants.len()).map(move |index| grant::read(grants.get(index), process, index))
    }

    /// Reads process number `index`.
    pub(crate) fn read(reader: process::Reader<'m>, index: u32) -> Result<Self, Error> {
        let name = reader.get_name()?.to_str()?;
        if !Name::is_good(name) {
            return Err(Error::ProcessName(index));
        }
        let binary = reader.get_binary()?.to_str()?;
        if !Name::is_good(binary) {
            return Err(Error::BinaryName(Name::new(name)));
        }
        let weight = reader.get_weight();
        in_range(name, "weight", u32::from(weight), limits::WEIGHT)?;
        let profile = read_profile(reader.get_profile()?, name)?;
        let grants = reader.get_grants()?;
        let most = profile.cap_slots.min(limits::GRANTS as u32);
        if grants.len() > most {
            return Err(Error::GrantCount(Name::new(name), grants.len(), most));
        }
        let is_essential = reader.get_essential();
        Ok(Self { name, binary, weight, is_essential, profile, grants })
    }
}

/// Reads a profile; every number in its range.
fn read_profile(reader: resource_profile::Reader<'_>, process: &str) -> Result<Profile, Error> {
    let checked = |field, value, range| in_range(process, field, value, range);
    let at_least_1 = 1..=u32::MAX;
    let ring_entries = checked("ringEntries", reader.get_ring_entries(), limits::RING_ENTRIES)?;
    if !ring_entries.is_power_of_two() {
        return Err(Error::RingEntries(Name::new(process), ring_entries));
    }
    let in_flight = reader.get_in_flight_call_limit();
    let queue = reader.get_endpoint_queue_limit();
    let scratch = reader.get_ring_scratch_limit_bytes();
    let stack_pages = reader.get_kernel_stack_pages();
    Ok(Profile {
        cap_slots: checked("capSlots", reader.get_cap_slots(), limits::CAP_SLOTS)?,
        threads: checked("threads", reader.get_threads(), limits::THREADS)?,
        kernel_stack_pages: checked("kernelStackPages", stack_pages, limits::KERNEL_STACK_PAGES)?,
        frames: checked("frames", reader.get_frames(), limits::FRAMES)?,
        sleep_waiters: checked("sleepWaiters", reader.get_sleep_waiters(), limits::SLEEP_WAITERS)?,
        ring_entries,
        ring_scratch_limit_bytes: checked(
            "ringScratchLimitBytes",
            scratch,
            limits::RING_SCRATCH_BYTES,
        )?,
        in_flight_call_limit: checked("inFlightCallLimit", in_flight, at_least_1.clone())?
            .min(limits::CALLS),
        endpoint_queue_limit: checked("endpointQueueLimit", queue, at_least_1)?.min(limits::CALLS),
        kernel_bytes: checked("kernelBytes", reader.get_kernel_bytes(), limits::KERNEL_BYTES)?,
    })
}

fn in_range(
    process: &str,
    field: &'static str,
    value: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, Error> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(Error::OutOfRange(Name::new(process), field, value, range))
    }
}
