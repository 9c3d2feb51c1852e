//! The kernel's half against an enemy: whatever the memory says, what must hold holds.

use abi_ring::{
    Accepted, Credit, Ended, KernelRing, Outcome, Payload, PollerToken, Refusal, Request, Visitor,
};
use abi_types::limits::{RING_BATCH_SQPOLL, RING_BATCH_TIMER};
use abi_types::{Opcode, Status};

use crate::{HostileMemory, LIMIT};

/// Entries of the ring under attack.
const ENTRIES: u32 = 4;

/// Runs passes of every kind of consumer and completes what they took, at once or later, as
/// `script` says; the memory lies as `script` says. Fails by panicking.
pub fn hostile_session(script: &[u8]) {
    let memory = HostileMemory::scripted(ENTRIES, script);
    let start = memory.words().next_word();
    let (ring, mut cq) = KernelRing::starting_at(start, memory, LIMIT, LIMIT);
    ring.memory().words().arm();
    let cq_entries = 2 * ENTRIES;
    let mut pending: Vec<(Credit, u16, u32)> = Vec::new();
    let mut poller: Option<PollerToken> = None;
    while let Some(step) = ring.memory().words().next() {
        match step % 8 {
            0..=3 => {
                let (pass, limit) = match (step % 4, &poller) {
                    (0, _) => (ring.begin(Visitor::Syscall), ENTRIES),
                    (1, _) => (ring.begin(Visitor::Timer), RING_BATCH_TIMER),
                    (2, Some(token)) => (ring.begin_poll(token), RING_BATCH_SQPOLL),
                    _ => (ring.borrow(), RING_BATCH_SQPOLL),
                };
                let own_thread = matches!(step % 4, 0 | 3);
                let Ok(mut pass) = pass else { continue };
                let mut taken = 0;
                while let Some(Accepted { credit, request }) = pass.next() {
                    taken += 1;
                    assert!(taken <= limit, "a pass took more than its limit");
                    let (slot, length) = check(&request, own_thread);
                    if step & 8 == 0 {
                        pending.push((credit, slot, length));
                    } else {
                        let posted = ring.post(&mut cq, credit, &Outcome::plain(Status::Cancelled));
                        assert!(posted.count <= cq_entries);
                    }
                }
                if step & 16 != 0 && step % 4 == 0 {
                    poller = Some(pass.hand_over().expect("an open ring, a syscall's pass"));
                }
            }
            4 | 5 => {
                let Some((credit, slot, length)) = pending.pop() else { continue };
                let outcome = Outcome { length, ..Outcome::plain(Status::Ok) };
                let posted = match step & 8 {
                    0 => ring.post_from_slot(&mut cq, credit, &outcome, &ring, slot),
                    _ => ring.post_words(&mut cq, credit, &outcome, &[!0; 20]),
                };
                assert!(posted.count <= cq_entries);
            }
            6 => {
                assert!(ring.count() <= cq_entries);
                if let Some(token) = &poller {
                    let _ = ring.fall_asleep(token).expect("nothing revoked it");
                    ring.wake_poller();
                }
            }
            _ => {
                let Some(token) = poller.take() else {
                    ring.memory().words().scribble();
                    continue;
                };
                let id = token.id();
                assert_eq!(ring.release(token), Ended::Now);
                assert_eq!(ring.revoke(id), Ended::Stale);
            }
        }
        ring.check_invariants().expect("invariants");
        assert_eq!(ring.in_flight() as usize, pending.len(), "a completion lost or doubled");
    }
    assert!(matches!(ring.close(), Ended::Now));
    assert_eq!(ring.begin(Visitor::Syscall).err(), Some(Refusal::Closed));
}

/// What decoding promises, and the inline slot the request uses.
fn check(request: &Result<Request, Status>, own_thread: bool) -> (u16, u32) {
    let request = match request {
        Ok(request) => request,
        Err(status) => {
            let refusals = [
                Status::UnsupportedOpcode,
                Status::InvalidArgument,
                Status::ParamsTooLarge,
                Status::ResultTooLarge,
            ];
            assert!(refusals.contains(status), "{status:?} is not for decoding to say");
            return (0, 0);
        }
    };
    let payload = match request {
        Request::Call(call) => {
            assert!(own_thread, "a {:?} was taken without its thread", Opcode::Call);
            call.params()
        }
        Request::Park(_) => {
            assert!(own_thread, "a {:?} was taken without its thread", Opcode::Park);
            return (0, 0);
        }
        Request::Return(answer) => answer.results(),
        _ => return (0, 0),
    };
    assert!(payload.length() <= LIMIT);
    match payload {
        Payload::Inline { slot, length } => {
            assert!(u32::from(slot) < ENTRIES && length <= 128);
            (slot, length)
        }
        _ => (0, 0),
    }
}
