//! Endpoint: the facets of a service, and how busy it is.

use crate::refuse;
use core_ledger::Line;
use kernel_ops::capability::FacetOf;
use kernel_ops::object::{Calling, NoFacet, Objects};
use kernel_ops::service::GRANTS_PER_SERVICE;
use schema::endpoint::{
    LoadResults, MintFacetParams, MintFacetResults, RevokeFacetsParams, RevokeFacetsResults, Server,
};
use schema_wire::{Answer, CapSlot, ExceptionKind, InterfaceTag, NoResult};

/// What it needs of the kernel.
pub trait Host {
    /// A new facet in the caller's table, of that interface or of the one the endpoint serves.
    fn mint(&mut self, badge: u64, interface: Option<InterfaceTag>) -> Result<CapSlot, NoFacet>;
    /// Makes every facet with the badge stale: how many there were.
    fn revoke(&mut self, badge: u64) -> u32;
    /// What waits and is served, with the limits; `None` if the endpoint is gone.
    fn load(&self) -> Option<LoadResults>;
}

/// The receiving side of an endpoint, in a call.
pub struct Owner<'c, 'r, M: Objects> {
    /// The call on it.
    pub calling: &'c mut Calling<'r, M>,
    /// The endpoint.
    pub of: FacetOf,
}

impl<M: Objects> Host for Owner<'_, '_, M> {
    fn mint(&mut self, badge: u64, interface: Option<InterfaceTag>) -> Result<CapSlot, NoFacet> {
        self.calling.mint(self.of, badge, interface)
    }

    fn revoke(&mut self, badge: u64) -> u32 {
        self.calling.revoke(self.of, badge)
    }

    fn load(&self) -> Option<LoadResults> {
        let load = self.calling.load(self.of)?;
        Some(LoadResults {
            queued: load.queued,
            queue_limit: load.limits.queued,
            in_flight: load.in_flight,
            in_flight_limit: load.limits.in_flight,
        })
    }
}

/// What is said where there is no facet.
fn no_facet(why: NoFacet) -> NoResult {
    let (kind, sentence) = match why {
        NoFacet::Gone => (ExceptionKind::Disconnected, "the endpoint is gone"),
        NoFacet::Badges => (
            ExceptionKind::Overloaded,
            "the service has facets of 256 badges already: revoke those of one first",
        ),
        NoFacet::Slots => (ExceptionKind::Overloaded, Line::CapSlots.exhausted()),
    };
    refuse(kind, sentence)
}
const _: () = assert!(GRANTS_PER_SERVICE == 256, "it says how many");

/// The server.
#[derive(Debug)]
pub struct Endpoint<'h, H>(pub &'h mut H);

impl<H: Host> Server for Endpoint<'_, H> {
    fn mint_facet(&mut self, params: MintFacetParams) -> Answer<MintFacetResults> {
        let MintFacetParams { badge, interface_id } = params;
        let interface = InterfaceTag::of(interface_id);
        if interface.is_none() && interface_id != 0 {
            return Err(refuse(
                ExceptionKind::InvalidArgument,
                "the interface id has no tag: its halves must differ, or 0 for what the endpoint serves",
            ));
        }
        match self.0.mint(badge, interface) {
            Ok(facet) => Ok(MintFacetResults {
                facet_index: facet.index() as u16,
                facet_generation: facet.generation(),
            }),
            Err(why) => Err(no_facet(why)),
        }
    }

    fn revoke_facets(&mut self, params: RevokeFacetsParams) -> Answer<RevokeFacetsResults> {
        Ok(RevokeFacetsResults { revoked: self.0.revoke(params.badge) })
    }

    fn load(&mut self) -> Answer<LoadResults> {
        self.0.load().ok_or_else(|| refuse(ExceptionKind::Disconnected, "the endpoint is gone"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Service {
        minted: Result<CapSlot, NoFacet>,
        badge: u64,
        interface: Option<InterfaceTag>,
        load: Option<LoadResults>,
    }

    impl Host for Service {
        fn mint(
            &mut self,
            badge: u64,
            interface: Option<InterfaceTag>,
        ) -> Result<CapSlot, NoFacet> {
            (self.badge, self.interface) = (badge, interface);
            self.minted
        }
        fn revoke(&mut self, badge: u64) -> u32 {
            self.badge = badge;
            3
        }
        fn load(&self) -> Option<LoadResults> {
            self.load
        }
    }

    const GONE: Service =
        Service { minted: Err(NoFacet::Gone), badge: 0, interface: None, load: None };

    #[test]
    fn a_facet_is_told_by_slot_and_generation() {
        let mut service = Service { minted: Ok(CapSlot::new(0xffff, 7)), ..GONE };
        let minted =
            Endpoint(&mut service).mint_facet(MintFacetParams { badge: 9, interface_id: 1 });
        assert_eq!(minted, Ok(MintFacetResults { facet_index: 0xffff, facet_generation: 7 }));
        assert_eq!((service.badge, service.interface), (9, InterfaceTag::of(1)));
    }

    #[test]
    fn a_facet_is_of_the_interface_that_is_named_or_of_none_in_particular() {
        let mint = |interface_id| {
            let mut service = Service { minted: Ok(CapSlot::new(1, 1)), ..GONE };
            let minted =
                Endpoint(&mut service).mint_facet(MintFacetParams { badge: 1, interface_id });
            minted.map(|_| service.interface)
        };
        assert_eq!((mint(0), mint(7)), (Ok(None), Ok(InterfaceTag::of(7))));
        let Err(NoResult::Exception(exception)) = mint(7 << 32 | 7) else { panic!("accepted") };
        assert_eq!(exception.kind(), ExceptionKind::InvalidArgument);
    }

    #[test]
    fn revoking_goes_by_badge_and_says_how_many_there_were() {
        let mut service = GONE;
        let revoked = Endpoint(&mut service).revoke_facets(RevokeFacetsParams { badge: 5 });
        assert_eq!((revoked, service.badge), (Ok(RevokeFacetsResults { revoked: 3 }), 5));
    }

    #[test]
    fn the_load_is_the_hosts() {
        let load = LoadResults { queued: 1, queue_limit: 2, in_flight: 3, in_flight_limit: 4 };
        let mut service = Service { load: Some(load), ..GONE };
        assert_eq!(Endpoint(&mut service).load(), Ok(load));
    }

    #[test]
    fn everything_that_runs_out_has_its_own_sentence() {
        use ExceptionKind::{Disconnected, Overloaded};
        let params = MintFacetParams { badge: 9, interface_id: 1 };
        for (why, kind, sentence) in [
            (NoFacet::Gone, Disconnected, "the endpoint is gone"),
            (NoFacet::Badges, Overloaded, "256 badges"),
            (NoFacet::Slots, Overloaded, "raise capSlots"),
        ] {
            let mut service = Service { minted: Err(why), ..GONE };
            let Err(NoResult::Exception(exception)) = Endpoint(&mut service).mint_facet(params)
            else {
                panic!("accepted")
            };
            assert_eq!(exception.kind(), kind);
            assert!(exception.message().contains(sentence), "{}", exception.message());
        }
    }

    #[test]
    fn no_endpoint_is_disconnected() {
        let Err(NoResult::Exception(exception)) = Endpoint(&mut { GONE }).load() else {
            panic!("accepted")
        };
        assert_eq!(exception.kind(), ExceptionKind::Disconnected);
    }
}
