//! Every state of a ring's ownership against every event, written out.
use abi_ring::*;
use abi_ring_testing::{LIMIT, PlainMemory};

type Ring = KernelRing<PlainMemory>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Free,
    Syscall,
    Timer,
    Polled,
    PolledPass,
    PolledStopping,
    Stale,
    Replaced,
    Closed,
    ClosedInPass,
}
use State::*;

/// A ring brought into a state, with the poller's token if it has had one, and what keeps the
/// state up.
struct Stage<'r> {
    pass: Option<Pass<'r, PlainMemory>>,
    /// The token under test: of the current poller, or of one that was.
    token: PollerToken,
    _other: Option<PollerToken>,
}

fn bring(ring: &Ring, state: State) -> Stage<'_> {
    let hand_over = || ring.begin(Visitor::Syscall).unwrap().hand_over().unwrap();
    let token = hand_over();
    let id = token.id();
    let mut other = None;
    let pass = match state {
        Polled => None,
        PolledPass => Some(ring.begin_poll(&token).unwrap()),
        PolledStopping => {
            let pass = ring.begin_poll(&token).unwrap();
            assert_eq!(ring.revoke(id), Ended::WithPass);
            Some(pass)
        }
        _ => {
            assert_eq!(ring.revoke(id), Ended::Now);
            match state {
                Syscall => Some(ring.begin(Visitor::Syscall).unwrap()),
                Timer => Some(ring.begin(Visitor::Timer).unwrap()),
                Replaced => {
                    other = Some(hand_over());
                    None
                }
                Closed => {
                    assert_eq!(ring.close(), Ended::Now);
                    None
                }
                ClosedInPass => {
                    let pass = ring.begin(Visitor::Syscall).unwrap();
                    assert_eq!(ring.close(), Ended::WithPass);
                    Some(pass)
                }
                _ => None,
            }
        }
    };
    Stage { pass, token, _other: other }
}

const STATES: [State; 10] = [
    Free,
    Syscall,
    Timer,
    Polled,
    PolledPass,
    PolledStopping,
    Stale,
    Replaced,
    Closed,
    ClosedInPass,
];

#[test]
fn beginning_without_a_token() {
    for visitor in [Visitor::Syscall, Visitor::Timer] {
        for state in STATES {
            let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
            let _stage = bring(&ring, state);
            let expected = match state {
                Free | Stale => None,
                Syscall | Timer => Some(Refusal::Busy),
                Polled | PolledPass | PolledStopping | Replaced => Some(Refusal::Polled),
                Closed | ClosedInPass => Some(Refusal::Closed),
            };
            assert_eq!(ring.begin(visitor).err(), expected, "{visitor:?} in {state:?}");
        }
    }
}

#[test]
fn beginning_with_a_token() {
    for state in STATES {
        let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
        let stage = bring(&ring, state);
        let expected = match state {
            Polled => None,
            PolledPass | PolledStopping => Some(Refusal::Busy),
            Free | Syscall | Timer | Stale | Replaced => Some(Refusal::Stale),
            Closed | ClosedInPass => Some(Refusal::Closed),
        };
        assert_eq!(ring.begin_poll(&stage.token).err(), expected, "{state:?}");
    }
}

#[test]
fn borrowing_from_the_poller() {
    for state in STATES {
        let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
        let _stage = bring(&ring, state);
        let expected = match state {
            Polled | Replaced => None,
            PolledPass | PolledStopping => Some(Refusal::Busy),
            Free | Syscall | Timer | Stale => Some(Refusal::Stale),
            Closed | ClosedInPass => Some(Refusal::Closed),
        };
        assert_eq!(ring.borrow().err(), expected, "{state:?}");
    }
}

#[test]
fn handing_over() {
    for state in [Syscall, Timer, PolledPass, PolledStopping, ClosedInPass] {
        let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
        let mut stage = bring(&ring, state);
        let token = stage.pass.take().unwrap().hand_over();
        match state {
            Syscall => {
                let token = token.unwrap();
                assert_ne!(token.id(), stage.token.id());
                drop(ring.begin_poll(&token).unwrap());
                assert_eq!(ring.release(token), Ended::Now, "and it can be undone");
                assert!(ring.begin(Visitor::Syscall).is_ok());
            }
            ClosedInPass => assert_eq!(token.err(), Some(Refusal::Closed)),
            _ => assert_eq!(token.err(), Some(Refusal::Stale), "{state:?}"),
        }
    }
}

#[test]
fn revoking() {
    for state in STATES {
        let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
        let mut stage = bring(&ring, state);
        let expected = match state {
            Polled => Ended::Now,
            PolledPass | PolledStopping => Ended::WithPass,
            _ => Ended::Stale,
        };
        assert_eq!(ring.revoke(stage.token.id()), expected, "{state:?}");
        if state == Replaced {
            assert!(ring.borrow().is_ok(), "the other poller's ownership stands");
        }
        if expected != Ended::Stale {
            stage.pass = None;
            assert!(ring.begin(Visitor::Timer).is_ok(), "{state:?}");
        }
    }
}

#[test]
fn closing() {
    for state in STATES {
        let (ring, _) = KernelRing::new(PlainMemory::zeroed(4), LIMIT, LIMIT);
        let mut stage = bring(&ring, state);
        let expected = match state {
            Free | Polled | Stale | Replaced => Ended::Now,
            Syscall | Timer | PolledPass | PolledStopping => Ended::WithPass,
            Closed | ClosedInPass => Ended::Stale,
        };
        assert_eq!(ring.close(), expected, "{state:?}");
        stage.pass = None;
        assert_eq!(ring.begin(Visitor::Syscall).err(), Some(Refusal::Closed));
        assert_eq!(ring.borrow().err(), Some(Refusal::Closed));
        assert_eq!(ring.begin_poll(&stage.token).err(), Some(Refusal::Closed));
        assert_eq!(ring.fall_asleep(&stage.token), Err(Refusal::Closed));
        assert!(!ring.wake_poller() && !ring.is_live(stage.token.id()));
    }
}
