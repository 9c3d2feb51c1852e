//! The numbers of a resource profile, from a manifest or a spawner.

use core::fmt;
use core::ops::RangeInclusive;

use core_ledger::Profile;
use schema::manifest::ResourceProfile;

use crate::limits;

/// What is wrong with a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// A number outside of its range: the field, the number, and the range.
    OutOfRange(&'static str, u32, RangeInclusive<u32>),
    /// A number of ring entries that is no power of two.
    RingEntries(u32),
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(field, value, range) => {
                write!(f, "{field} is {value}; it is {} to {}", range.start(), range.end())
            }
            Self::RingEntries(value) => {
                write!(f, "ringEntries is {value}; it is a power of two")
            }
        }
    }
}

/// Checks every number of a profile; those that count as less if they are more do.
pub fn check_profile(from: &ResourceProfile) -> Result<Profile, ProfileError> {
    let at_least_1 = 1..=u32::MAX;
    let ring_entries = in_range("ringEntries", from.ring_entries, limits::RING_ENTRIES)?;
    if !ring_entries.is_power_of_two() {
        return Err(ProfileError::RingEntries(ring_entries));
    }
    let (in_flight, queue) = (from.in_flight_call_limit, from.endpoint_queue_limit);
    let (scratch, stack_pages) = (from.ring_scratch_limit_bytes, from.kernel_stack_pages);
    let buffers = from.registered_buffers;
    Ok(Profile {
        cap_slots: in_range("capSlots", from.cap_slots, limits::CAP_SLOTS)?,
        threads: in_range("threads", from.threads, limits::THREADS)?,
        kernel_stack_pages: in_range("kernelStackPages", stack_pages, limits::KERNEL_STACK_PAGES)?,
        frames: in_range("frames", from.frames, limits::FRAMES)?,
        sleep_waiters: in_range("sleepWaiters", from.sleep_waiters, limits::SLEEP_WAITERS)?,
        ring_entries,
        ring_scratch_limit_bytes: in_range(
            "ringScratchLimitBytes",
            scratch,
            limits::RING_SCRATCH_BYTES,
        )?,
        in_flight_call_limit: in_range("inFlightCallLimit", in_flight, at_least_1.clone())?
            .min(limits::CALLS),
        endpoint_queue_limit: in_range("endpointQueueLimit", queue, at_least_1)?.min(limits::CALLS),
        kernel_bytes: in_range("kernelBytes", from.kernel_bytes, limits::KERNEL_BYTES)?,
        registered_buffers: in_range("registeredBuffers", buffers, limits::REGISTERED_BUFFERS)?,
    })
}

pub(crate) fn in_range(
    field: &'static str,
    value: u32,
    range: RangeInclusive<u32>,
) -> Result<u32, ProfileError> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(ProfileError::OutOfRange(field, value, range))
    }
}
