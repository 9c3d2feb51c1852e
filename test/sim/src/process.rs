//! Processes by number, what they are granted, and the services some of them offer.

use crate::kernel::{RING_ENTRIES, Ring};
use crate::sim::Sim;
use crate::{Machine, Rule};
use abi_types::CapSlot;
use core_cap::Cap;
use core_ledger::MAX_LIMIT;
use core_manifest::{Name, Profile};
use core_sched_policy::{Policy, Weight};
use kernel_ops::capability::{FacetOf, Object, ProcessKey};
use kernel_process::{BeginError, NewProcess, Process};
use schema::{endpoint, park_space};
use test_machine::{HostObject, HostSpace, PLAIN};

/// The number of the process that serves the first service.
const FIRST_SERVING: u32 = 1 << 16;
/// Capabilities of a process: the clock, the right to park, its own endpoint, and services it calls.
const CAP_SLOTS: u32 = 8;

/// A process that has a number, and where its capabilities are.
pub(crate) struct Home {
    /// The kernel's name for it; another one's, once it has ended.
    key: ProcessKey,
    pub(crate) timer: CapSlot,
    pub(crate) park: CapSlot,
    /// Its own endpoint, if it serves.
    pub(crate) endpoint: Option<CapSlot>,
    /// By service, those it has called.
    facets: Vec<(usize, CapSlot)>,
}

/// A service, whose process is made with its first thread.
pub(crate) struct Offer {
    calls: u32,
    /// What facets of it name, once it is there.
    of: Option<FacetOf>,
}

impl<P: Policy + 'static> Machine<P> {
    /// Makes a service with room for that many calls; its number. Threads of the process
    /// [`serving`](Self::serving) it answer.
    pub fn add_service(&mut self, calls: u32) -> usize {
        self.sim.with(|w| {
            w.offers.push(Offer { calls, of: None });
            w.offers.len() - 1
        })
    }

    /// The number of the process that a service is served by.
    pub fn serving(service: usize) -> u32 {
        FIRST_SERVING + service as u32
    }
}

impl<P: Policy + 'static> Sim<P> {
    /// The process of a number; a new one if there is none, or if it has ended. `None` without room.
    pub(crate) fn process_numbered(self, number: u32) -> Option<&'static Process<Self>> {
        let key = self.with(|w| w.homes.get(&number).map(|home| home.key));
        let known = key.and_then(|key| {
            let process = self.0.records.process(key.slot)?;
            (process.key() == key && !process.is_closed()).then_some(process)
        });
        known.or_else(|| self.begin_process(number))
    }

    /// Makes a process, with what it may use and what it is granted.
    fn begin_process(self, number: u32) -> Option<&'static Process<Self>> {
        let serves = number.checked_sub(FIRST_SERVING).map(|service| service as usize);
        let calls = serves.map_or(0, |service| self.with(|w| w.offers[service].calls));
        let room = self.with(|w| w.threads.len() as u32);
        let profile = Profile {
            cap_slots: CAP_SLOTS,
            threads: room,
            kernel_stack_pages: room,
            sleep_waiters: room,
            frames: MAX_LIMIT,
            kernel_bytes: MAX_LIMIT,
            ring_entries: RING_ENTRIES,
            in_flight_call_limit: calls,
            endpoint_queue_limit: calls,
            ..Profile::NONE
        };
        let made = self.0.records.begin_process(
            self,
            NewProcess {
                name: Name::new("simulated"),
                profile,
                weight: Weight::DEFAULT,
                is_essential: false,
                serves: if serves.is_some() { &[PLAIN] } else { &[] },
                handles: 0,
                lent: None,
            },
        );
        let (process, endpoints) = match made {
            Ok(made) => made,
            Err(BeginError::Records) => return None,
            Err(error) => self.fail(Rule::Refused, format!("making a process: {error:?}")),
        };
        process.ops.space.create(&process.ops.ledger);
        let key = process.key();
        let of = endpoints.first().map(|&endpoint| FacetOf { process: key, endpoint });
        let home = Home {
            key,
            timer: self.grant(
                process,
                Cap::new(Object::Other(HostObject::Timer), HostObject::Timer.interface()),
            ),
            park: self.grant(process, Cap::new(Object::ParkSpace, park_space::INTERFACE_TAG)),
            endpoint: of.map(|of| {
                self.grant(process, Cap::new(Object::Endpoint(of), endpoint::INTERFACE_TAG))
            }),
            facets: Vec::new(),
        };
        self.with(|w| {
            if let Some(service) = serves {
                w.offers[service].of = of;
            }
            w.homes.insert(number, home);
        });
        Some(process)
    }

    fn grant(self, process: &'static Process<Self>, cap: Cap<Object<HostObject>>) -> CapSlot {
        let granted = process.ops.caps.lock().as_mut().map(|table| table.insert(cap));
        let slot = self.must("granting to a process that is there", granted.ok_or("it is gone"));
        self.must("granting to a process with room", slot)
    }

    /// The capability by which a process calls a service; `None` if nobody has served it yet.
    pub(crate) fn facet(self, number: u32, service: usize) -> Option<CapSlot> {
        let (key, of) = self.with(|w| {
            let home = w.homes.get(&number)?;
            match home.facets.iter().find(|facet| facet.0 == service) {
                Some(facet) => Some((Err(facet.1), None)),
                None => Some((Ok(home.key), w.offers[service].of)),
            }
        })?;
        let (process, of) = match key {
            Err(slot) => return Some(slot),
            Ok(key) => (self.0.records.process(key.slot)?, of?),
        };
        let badge = u64::from(number);
        let server = self.0.records.process(of.process.slot)?;
        let grant = server.ops.service.lock().as_mut()?.mint(of.endpoint, badge)?;
        let slot =
            self.grant(process, Cap { object: Object::Facet(of), interface: PLAIN, badge, grant });
        self.with(|w| w.homes.get_mut(&number).map(|home| home.facets.push((service, slot))))?;
        Some(slot)
    }

    /// The memory of a process.
    pub(crate) fn space_of(self, number: u32) -> Option<&'static HostSpace<Ring>> {
        let key = self.with(|w| w.homes.get(&number).map(|home| home.key))?;
        self.0.records.process(key.slot).map(|process| &process.ops.space)
    }
}
