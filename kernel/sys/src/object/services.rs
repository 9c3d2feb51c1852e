//! Endpoint: facets of the caller's own endpoints.

use super::{Calling, FacetOf, Object};
use crate::complete::complete_ended;
use crate::system::the;
use abi_types::CapSlot;
use core_cap::Cap;
use schema::endpoint::LoadResults;

/// The receiving side of an endpoint, in a call.
pub struct Owner<'c, 'r> {
    /// The call on it.
    pub calling: &'c mut Calling<'r>,
    /// The endpoint.
    pub of: FacetOf,
}

impl kernel_object::endpoint::Host for Owner<'_, '_> {
    fn mint(&mut self, badge: u64) -> Option<CapSlot> {
        let process = self.calling.caller.thread.process();
        let server = the().processes.get(self.of.process.slot as usize)?;
        let grant = server.service.lock().as_mut()?.mint(self.of.endpoint, badge)?;
        let facet = Cap { object: Object::Facet(self.of), badge, grant };
        let slot = process.caps.lock().as_mut().and_then(|table| table.insert(facet).ok());
        if slot.is_none()
            && let Some(service) = server.service.lock().as_mut()
        {
            service.unmint(self.of.endpoint, badge);
        }
        slot
    }

    fn revoke(&mut self, badge: u64) -> u32 {
        let Some(server) = the().processes.get(self.of.process.slot as usize) else { return 0 };
        server.service.lock().as_mut().map_or(0, |service| service.revoke(self.of.endpoint, badge))
    }

    fn load(&self) -> Option<LoadResults> {
        let server = the().processes.get(self.of.process.slot as usize)?;
        let service = server.service.lock();
        let load = service.as_ref()?.calls.load(self.of.endpoint)?;
        Some(LoadResults {
            queued: load.queued,
            queue_limit: load.limits.queued,
            in_flight: load.in_flight,
            in_flight_limit: load.limits.in_flight,
        })
    }
}

/// The receiving side was released: what waits at the endpoint ends.
pub fn close(of: FacetOf) {
    let Some(server) = the().processes.get(of.process.slot as usize) else { return };
    if let Some(service) = server.service.lock().as_mut() {
        // Not found: it was closed before.
        let _ = service.calls.close(of.endpoint, complete_ended);
    }
}
