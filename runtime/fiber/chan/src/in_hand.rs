//! What a channel has handed to futures that have not taken it yet. Under the channel's lock.
//!
//! A fiber or thread that was completed takes its value, because it goes on from there. A future may be
//! dropped instead, and then the value goes back to the front: to the first receiver that waits, else
//! before all that is buffered. While a future may do so the channel is not drained, closed or not.
//!
//! The same goes for a sender that selects and has committed itself to a future: if that is dropped
//! before the value is there, the pair has nobody on the receiving side, and the value goes to the
//! front when it comes.

use fiber_rt::{Defect, is_planted};

use crate::commit::NOBODY;
use crate::state::{Got, State};
use crate::waiter::Wakers;

impl<T> State<T> {
    /// Whether a future may give something back.
    #[inline]
    pub fn is_in_hand(&self) -> bool {
        self.in_hand > 0 && !is_planted(Defect::ForgetsWhatIsInHand)
    }

    /// As `recv`, for a future: what it is promised it may renounce.
    pub fn recv_by_future(&mut self, me: usize) -> Got<T> {
        let got = self.recv(me);
        self.in_hand += usize::from(matches!(got, Got::Promised(_)));
        got
    }

    /// Ends what a future had in hand: it has taken it, or there is nothing any more.
    pub fn take_from_hand(&mut self) -> Wakers {
        self.in_hand = self.in_hand.saturating_sub(1);
        let mut wakers = Wakers::default();
        self.end_if_drained(&mut wakers);
        wakers
    }

    /// Takes a value back that was handed to a future.
    pub fn give_back(&mut self, value: T) -> Wakers {
        let waker = self.put_back(value);
        let mut wakers = self.take_from_hand();
        wakers.extend(waker);
        wakers
    }

    /// Ends the promise made to the future `me`, which is dropped.
    pub fn renounce(&mut self, me: usize) -> Wakers {
        match self.take(me) {
            Some(Some(value)) => self.give_back(value),
            Some(None) => self.take_from_hand(),
            None => {
                // Its sender is on its way; `fulfil` or `revoke` ends it.
                if let Some(pair) = self.pairs.iter_mut().find(|(_, receiver)| *receiver == me) {
                    pair.1 = NOBODY;
                }
                Wakers::default()
            }
        }
    }
}
