//! Every (state, flags, event) of the state word against the table of legal transitions.
use fiber_core::{CancelVerdict, CommitVerdict, ParkVerdict, State, Ticket, WakeVerdict, Word};

const STATES: [State; 7] = [
    State::Init,
    State::Runnable,
    State::Running,
    State::Parking,
    State::Parked,
    State::Done,
    State::Cancelled,
];
const SHIELD: u64 = 1 << 5;

/// Every word that can exist: PENDING in Parking only, and nobody parks who sees a cancellation.
fn words() -> impl Iterator<Item = Word> {
    STATES.into_iter().flat_map(|state| {
        (0..8u64).filter_map(move |flags| {
            let (cancel, pending, shield) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
            if pending && state != State::Parking {
                return None;
            }
            if state == State::Parked && cancel && !shield {
                return None;
            }
            let word = Word::compose(state, Ticket::new(7), cancel, pending);
            Some(Word::from_bits(word.to_bits() | if shield { SHIELD } else { 0 }))
        })
    })
}

/// The result of an event as state, whether CANCEL, PENDING, SHIELD, and the ticket.
fn parts(word: Word) -> (State, bool, bool, bool, u64) {
    let ticket = word.ticket().number();
    (word.state(), word.is_cancelled(), word.is_pending(), word.is_shielded(), ticket)
}

#[test]
fn events_of_the_owner_move_one_state_on_and_nothing_else() {
    type Event = (&'static str, fn(Word) -> Option<Word>, State, State);
    let events: [Event; 8] = [
        ("start", |w| Some(w.start().ok()?.0), State::Init, State::Runnable),
        ("dispatch", |w| Some(w.dispatch().ok()?.0), State::Runnable, State::Running),
        ("requeue", |w| Some(w.requeue().ok()?.0), State::Running, State::Runnable),
        ("abort_park", |w| Some(w.abort_park().ok()?.0), State::Parking, State::Running),
        ("finish", |w| Some(w.finish(true).ok()?.0), State::Running, State::Done),
        ("finish unrun", |w| Some(w.finish(false).ok()?.0), State::Running, State::Cancelled),
        ("shield", |w| Some(w.set_shield(true).ok()?.0), State::Running, State::Running),
        ("unshield", |w| Some(w.set_shield(false).ok()?.0), State::Running, State::Running),
    ];
    for word in words() {
        for (name, event, from, to) in events {
            let found = event(word);
            let (state, cancel, _, shield, ticket) = parts(word);
            if state != from {
                assert_eq!(found, None, "{name} of {word:?}");
                continue;
            }
            let shield = match name {
                "shield" => true,
                "unshield" => false,
                _ => shield,
            };
            let expected = (to, cancel, false, shield, ticket);
            assert_eq!(found.map(parts), Some(expected), "{name} of {word:?}");
        }
    }
}

#[test]
fn a_park_begins_with_a_new_ticket_unless_a_cancellation_is_seen() {
    for word in words() {
        let (state, cancel, _, shield, ticket) = parts(word);
        let found = word.begin_park().ok();
        if state != State::Running {
            assert_eq!(found, None);
        } else if cancel && !shield {
            assert_eq!(found, Some((word, ParkVerdict::Cancelled)));
        } else {
            let (next, verdict) = found.unwrap();
            assert_eq!(verdict, ParkVerdict::Parking(Ticket::new(ticket + 1)));
            assert_eq!(parts(next), (State::Parking, cancel, false, shield, ticket + 1));
        }
    }
}

#[test]
fn a_commit_fails_exactly_if_a_wake_is_pending_or_a_cancellation_is_seen() {
    for word in words() {
        let (state, cancel, pending, shield, ticket) = parts(word);
        let found = word.commit_park().ok();
        if state != State::Parking {
            assert_eq!(found, None);
            continue;
        }
        let (next, verdict) = found.unwrap();
        let resumes = pending || (cancel && !shield);
        let to = if resumes { State::Running } else { State::Parked };
        assert_eq!(parts(next), (to, cancel, false, shield, ticket), "{word:?}");
        let expected = if resumes { CommitVerdict::Resume } else { CommitVerdict::Parked };
        assert_eq!(verdict, expected);
    }
}

#[test]
fn a_wake_needs_its_own_ticket_and_a_wait() {
    for word in words() {
        let (state, cancel, _, shield, ticket) = parts(word);
        for other in [ticket - 1, ticket + 1, 0] {
            assert!(word.wake(Ticket::new(other)).is_err(), "{word:?} with {other}");
        }
        let found = word.wake(Ticket::new(ticket)).ok();
        match state {
            State::Parking => {
                let expected = (State::Parking, cancel, true, shield, ticket);
                assert_eq!(found.map(|f| (parts(f.0), f.1)), Some((expected, WakeVerdict::Noted)));
            }
            State::Parked => {
                let expected = (State::Runnable, cancel, false, shield, ticket);
                assert_eq!(
                    found.map(|f| (parts(f.0), f.1)),
                    Some((expected, WakeVerdict::Enqueue))
                );
            }
            _ => assert!(found.is_none(), "{word:?}"),
        }
    }
}

#[test]
fn a_cancellation_is_sticky_and_claims_who_is_parked_without_a_shield() {
    for word in words() {
        let (state, cancel, pending, shield, ticket) = parts(word);
        let (next, verdict) = word.cancel();
        if cancel || matches!(state, State::Done | State::Cancelled) {
            assert_eq!((next, verdict), (word, CancelVerdict::Already));
        } else if state == State::Parked && !shield {
            assert_eq!(parts(next), (State::Runnable, true, false, false, ticket));
            assert_eq!(verdict, CancelVerdict::Enqueue);
        } else {
            assert_eq!(parts(next), (state, true, pending, shield, ticket));
            assert_eq!(verdict, CancelVerdict::Noted);
        }
        assert_eq!(next.cancel().1, CancelVerdict::Already);
    }
}

#[test]
fn a_recycled_frame_keeps_its_ticket_and_nothing_else() {
    for word in words() {
        let found = word.recycle().ok().map(|f| parts(f.0));
        let expected = matches!(word.state(), State::Done | State::Cancelled).then_some((
            State::Init,
            false,
            false,
            false,
            7,
        ));
        assert_eq!(found, expected, "{word:?}");
    }
}

/// The union of all events is the list of legal edges and no more.
#[test]
fn the_edges_are_those_of_the_list() {
    use State::*;
    let legal = [
        (Init, Runnable),
        (Runnable, Running),
        (Running, Runnable),
        (Running, Parking),
        (Parking, Parking),
        (Parking, Parked),
        (Parking, Running),
        (Parked, Runnable),
        (Running, Done),
        (Running, Cancelled),
        (Done, Init),
        (Cancelled, Init),
    ];
    let mut seen = Vec::new();
    for word in words() {
        let next = [
            word.start().ok().map(|f| f.0),
            word.dispatch().ok().map(|f| f.0),
            word.requeue().ok().map(|f| f.0),
            word.begin_park().ok().map(|f| f.0),
            word.abort_park().ok().map(|f| f.0),
            word.commit_park().ok().map(|f| f.0),
            word.wake(word.ticket()).ok().map(|f| f.0),
            Some(word.cancel().0),
            word.finish(true).ok().map(|f| f.0),
            word.finish(false).ok().map(|f| f.0),
            word.recycle().ok().map(|f| f.0),
        ];
        for next in next.into_iter().flatten() {
            assert!(words().any(|w| parts(w).0 == parts(next).0), "{next:?} can exist");
            let edge = (word.state(), next.state());
            if edge.0 != edge.1 || next.is_pending() {
                assert!(legal.contains(&edge), "{word:?} to {next:?}");
                if !seen.contains(&edge) {
                    seen.push(edge);
                }
            }
        }
    }
    assert_eq!(seen.len(), legal.len(), "every legal edge is taken by some event");
}
