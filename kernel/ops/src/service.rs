//! What a process serves: calls at its endpoints, and the facets they come through.

use crate::paid::{NoMemory, PaidVec};
use crate::party::Party;
use abi_types::InterfaceTag;
use alloc::vec::Vec;
use core::cell::Cell;
use core_cap::{Grant, GrantEntry, Grants};
use core_endpoint::{Endpoint, EndpointKey, Limits, Record};
use core_fallible::try_push;
use core_ledger::Ledger;

/// The calls of what a process serves.
pub type Calls =
    core_endpoint::Service<Party, Party, PaidVec<Record<Party, Party>>, PaidVec<Endpoint>>;

/// Badges that can be told apart and revoked, per serving process: tables that are made whole, so that
/// minting a facet allocates nothing.
pub const GRANTS_PER_SERVICE: usize = 256;

/// What a process serves, in memory that its account has paid for.
#[derive(Debug)]
pub struct Service {
    /// Endpoints and calls.
    pub calls: Calls,
    /// What revokes facets; looked at under the same lock as the calls.
    pub grants: Grants<PaidVec<GrantEntry>>,
    /// The facets that were made, by endpoint and badge.
    facets: PaidVec<Facet>,
    /// What each endpoint serves: the interface of a facet that names no other.
    interfaces: PaidVec<(EndpointKey, InterfaceTag)>,
}

/// All facets of an endpoint with one badge.
#[derive(Clone, Copy, Debug)]
struct Facet {
    endpoint: EndpointKey,
    badge: u64,
    /// What they fall with.
    grant: Grant,
    /// How many were made, copies not counted.
    minted: u32,
}

impl Facet {
    fn is(&self, endpoint: EndpointKey, badge: u64) -> bool {
        self.endpoint == endpoint && self.badge == badge
    }
}

/// Records that are made between two pauses.
const RECORDS_PER_PAUSE: usize = 32;

impl Service {
    /// A service of an endpoint for each of these interfaces, with these limits, and their names. `pause` is called
    /// now and then, with no lock held: there may be thousands of records.
    pub fn new(
        ledger: &'static Ledger,
        limits: Limits,
        serves: &[InterfaceTag],
        pause: impl Fn(),
    ) -> Result<(Self, Vec<EndpointKey>), NoMemory> {
        let count = serves.len();
        let records = (limits.queued + limits.in_flight) as usize * count;
        let made = Cell::new(0_usize);
        let before = || {
            made.set(made.get() + 1);
            if made.get().is_multiple_of(RECORDS_PER_PAUSE) {
                pause();
            }
        };
        let record = |_| {
            before();
            Record::UNUSED
        };
        let records = PaidVec::of(ledger, records, record)?;
        let endpoints = PaidVec::of(ledger, count, |_| Endpoint::UNUSED)?;
        let mut calls = Calls::new_with(records, endpoints, before);
        let (mut endpoints, mut interfaces) = (Vec::new(), PaidVec::with_room(ledger, count)?);
        for interface in serves {
            pause();
            let endpoint = calls.open(limits).map_err(|_| NoMemory::Machine)?;
            try_push(&mut endpoints, endpoint)?;
            interfaces.push((endpoint, *interface))?;
        }
        pause();
        let grants =
            Grants::new(PaidVec::of(ledger, GRANTS_PER_SERVICE, |_| GrantEntry::default())?);
        pause();
        let facets = PaidVec::with_room(ledger, GRANTS_PER_SERVICE)?;
        Ok((Self { calls, grants, facets, interfaces }, endpoints))
    }

    /// What an endpoint serves.
    pub fn interface_of(&self, endpoint: EndpointKey) -> Option<InterfaceTag> {
        let mut interfaces = self.interfaces.as_ref().iter();
        interfaces.find(|(of, _)| *of == endpoint).map(|(_, interface)| *interface)
    }

    /// Bytes of the kernel's heap that such a service takes.
    pub const fn bytes(limits: Limits, count: usize) -> usize {
        let records = (limits.queued + limits.in_flight) as usize * count;
        records * size_of::<Record<Party, Party>>()
            + count * (size_of::<Endpoint>() + size_of::<(EndpointKey, InterfaceTag)>())
            + GRANTS_PER_SERVICE * (size_of::<GrantEntry>() + size_of::<Facet>())
    }

    /// The grant for a new facet of `endpoint` with `badge`; `None` if there are too many badges.
    pub fn mint(&mut self, endpoint: EndpointKey, badge: u64) -> Option<Grant> {
        if let Some(facet) = self.facets.as_mut().iter_mut().find(|facet| facet.is(endpoint, badge))
        {
            facet.minted = facet.minted.saturating_add(1);
            return Some(facet.grant);
        }
        if self.facets.as_ref().len() == self.facets.room() {
            return None;
        }
        let grant = self.grants.open().ok()?;
        self.facets.push(Facet { endpoint, badge, grant, minted: 1 }).ok()?;
        self.calls.set_shared(endpoint, self.is_shared(endpoint));
        Some(grant)
    }

    /// Takes back one [`mint`](Self::mint) whose facet found no slot; with the last one its grant goes.
    pub fn unmint(&mut self, endpoint: EndpointKey, badge: u64) {
        let at = self.facets.as_ref().iter().position(|facet| facet.is(endpoint, badge));
        let Some(at) = at else { return };
        let Some(facet) = self.facets.as_mut().get_mut(at) else { return };
        facet.minted = facet.minted.saturating_sub(1);
        if facet.minted == 0 {
            self.remove(at);
        }
    }

    /// Takes the facets at a position out of the list and makes them stale; how many were made.
    fn remove(&mut self, at: usize) -> u32 {
        let facet = self.facets.swap_remove(at);
        // It was opened and never revoked, or it would not be in the list.
        let revoked = self.grants.revoke(facet.grant);
        debug_assert!(revoked.is_ok(), "a facet's grant is open as long as the facet is listed");
        self.calls.set_shared(facet.endpoint, self.is_shared(facet.endpoint));
        facet.minted
    }

    /// Whether facets of `endpoint` have more than one badge.
    fn is_shared(&self, endpoint: EndpointKey) -> bool {
        let mut badges = self.facets.as_ref().iter().filter(|facet| facet.endpoint == endpoint);
        badges.next().is_some() && badges.next().is_some()
    }

    /// Makes every facet of `endpoint` with `badge` stale; how many were made.
    pub fn revoke(&mut self, endpoint: EndpointKey, badge: u64) -> u32 {
        let at = self.facets.as_ref().iter().position(|facet| facet.is(endpoint, badge));
        at.map_or(0, |at| self.remove(at))
    }
}
