//! Endpoint: the facets of a service, and how busy it is.

use crate::refuse;
use schema::endpoint::{
    LoadResults, MintFacetParams, MintFacetResults, RevokeFacetsParams, RevokeFacetsResults, Server,
};
use schema_wire::{Answer, CapSlot, ExceptionKind};

/// What it needs of the kernel.
pub trait Host {
    /// A new facet in the caller's table; `None` if table or facets are used up.
    fn mint(&mut self, badge: u64) -> Option<CapSlot>;
    /// Makes every facet with the badge stale: how many there were.
    fn revoke(&mut self, badge: u64) -> u32;
    /// What waits and is served, with the limits; `None` if the endpoint is gone.
    fn load(&self) -> Option<LoadResults>;
}

/// The server.
#[derive(Debug)]
pub struct Endpoint<'h, H>(pub &'h mut H);

impl<H: Host> Server for Endpoint<'_, H> {
    fn mint_facet(&mut self, params: MintFacetParams) -> Answer<MintFacetResults> {
        match self.0.mint(params.badge) {
            Some(facet) => Ok(MintFacetResults {
                facet_index: facet.index() as u16,
                facet_generation: facet.generation(),
            }),
            None => Err(refuse(
                ExceptionKind::Overloaded,
                "the capability table or the service's facets are used up",
            )),
        }
    }

    fn revoke_facets(&mut self, params: RevokeFacetsParams) -> Answer<RevokeFacetsResults> {
        Ok(RevokeFacetsResults { revoked: self.0.revoke(params.badge) })
    }

    fn load(&mut self) -> Answer<LoadResults> {
        self.0.load().ok_or_else(|| refuse(ExceptionKind::Disconnected, "the endpoint is gone"))
    }
}
