//! The sequential channel, and whether it explains a history.
use std::collections::HashSet;

/// What an operation did, as far as a channel is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Did {
    Sent(u32),
    /// Found the buffer full, with so many selects under way that may have kept a place.
    Full {
        kept: usize,
    },
    SendClosed,
    /// Sent by a select that had committed to it before a close at about the same time.
    SentLate(u32),
    Got(u32),
    /// Found nothing, with so many selects under way that may have committed to a send.
    Empty {
        kept: usize,
    },
    RecvClosed,
    Closed,
    /// One of the receiving ends has gone; with the last one goes what is in the channel.
    Gone,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub began: u64,
    pub ended: u64,
    pub did: Did,
    pub is_select_send: bool,
}

/// The sequential channel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Model {
    queue: Vec<u32>,
    is_closed: bool,
    /// Ends that receive.
    receivers: usize,
}

impl Model {
    /// The channel after `did`, or nothing if it could not have done that.
    fn step(&self, did: Did, capacity: Option<usize>) -> Option<Self> {
        let mut next = self.clone();
        let is_possible = match did {
            Did::Sent(value) => {
                next.queue.push(value);
                !self.is_closed
            }
            Did::Full { kept } => {
                capacity.is_some_and(|capacity| self.queue.len() + kept >= capacity)
            }
            Did::SendClosed => self.is_closed,
            Did::Got(value) => {
                let is_first = self.queue.first() == Some(&value);
                if is_first {
                    next.queue.remove(0);
                }
                is_first
            }
            Did::SentLate(value) => {
                next.queue.push(value);
                true
            }
            Did::Empty { kept } => self.queue.is_empty() && (!self.is_closed || kept > 0),
            Did::RecvClosed => self.queue.is_empty() && self.is_closed,
            Did::Closed => {
                next.is_closed = true;
                true
            }
            Did::Gone => {
                next.receivers = self.receivers.saturating_sub(1);
                if next.receivers == 0 {
                    next.is_closed = true;
                    next.queue.clear();
                }
                self.receivers > 0
            }
        };
        is_possible.then_some(next)
    }
}

/// Whether some order explains the history of a channel with so many receiving ends.
pub fn is_explained(events: &[Event], capacity: Option<usize>, receivers: usize) -> bool {
    fn search(
        events: &[Event],
        done: u64,
        model: &Model,
        capacity: Option<usize>,
        seen: &mut HashSet<(u64, Model)>,
    ) -> bool {
        if done.count_ones() as usize == events.len() {
            return true;
        }
        if !seen.insert((done, model.clone())) {
            return false;
        }
        let open = |i: &usize| done >> i & 1 == 0;
        // The next one began before any other that is left had ended.
        let first_end = (0..events.len()).filter(open).map(|i| events[i].ended).min().unwrap_or(0);
        (0..events.len()).filter(open).any(|i| {
            events[i].began <= first_end
                && model
                    .step(events[i].did, capacity)
                    .is_some_and(|next| search(events, done | 1 << i, &next, capacity, seen))
        })
    }
    let model = Model { receivers, ..Model::default() };
    search(events, 0, &model, capacity, &mut HashSet::new())
}

/// The checker itself: wrong answers are not explained.
#[test]
fn the_checker_finds_wrong_histories() {
    let event = |began, ended, did| Event { began, ended, did, is_select_send: false };
    let good = [event(0, 3, Did::Sent(1)), event(1, 2, Did::Got(1))];
    assert!(is_explained(&good, Some(0), 2), "a receive within a send");
    let wrong: [&[Event]; 9] = [
        // Received before it was sent.
        &[event(2, 3, Did::Sent(1)), event(0, 1, Did::Got(1))],
        // Received twice.
        &[event(0, 1, Did::Sent(1)), event(2, 3, Did::Got(1)), event(4, 5, Did::Got(1))],
        // Out of order.
        &[
            event(0, 1, Did::Sent(1)),
            event(2, 3, Did::Sent(2)),
            event(4, 5, Did::Got(2)),
            event(6, 7, Did::Got(1)),
        ],
        // Lost: closed and said to be empty while a value is in it.
        &[event(0, 1, Did::Sent(1)), event(2, 3, Did::Closed), event(4, 5, Did::RecvClosed)],
        // Sent after the close.
        &[event(0, 1, Did::Closed), event(2, 3, Did::Sent(1))],
        // Full while there was room.
        &[event(0, 1, Did::Full { kept: 0 })],
        // Empty where it should have said closed.
        &[event(0, 1, Did::Closed), event(2, 3, Did::Empty { kept: 0 })],
        // Sent when the last receiver was gone.
        &[event(0, 1, Did::Gone), event(2, 3, Did::Gone), event(4, 5, Did::Sent(1))],
        // Refused while one was there.
        &[event(0, 1, Did::Gone), event(2, 3, Did::SendClosed)],
    ];
    for history in wrong {
        assert!(!is_explained(history, Some(1), 2), "{history:?}");
    }
}
