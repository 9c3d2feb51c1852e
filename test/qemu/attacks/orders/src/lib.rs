//! What an observer tells an attacker to do: the method of a call whose first word says until when, and
//! whose second what else the attack needs. The answer's first word is how often it was done.
#![no_std]

/// An attack. [`Order::of`] is the inverse of `as u16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Order {
    /// Computes: no attack, what the others are compared with.
    Compute,
    /// Full queues of operations that fail, each in another way.
    Rings,
    /// As many pending operations as there are places, then all of them cancelled.
    Cells,
    /// A completion queue that is never emptied.
    Credits,
    /// Threads whose handles are released before they have run.
    Handles,
    /// Facets until the table is full, then all of them revoked.
    Facets,
    /// All sleeps a process may have, due at the same moment.
    Sleepers,
    /// Siblings that park and are woken all at once; the second word is an address of the observer's.
    Parkers,
    /// Yields.
    Yields,
    /// The largest messages, to itself.
    Messages,
    /// Segment registers; the second word is the FS base of the observer.
    Segments,
    /// Calls to a server that the observer calls too, in bursts.
    Bursts,
    /// Siblings that end with sleeps, receives and calls pending, and whose handles are gone.
    PendingEnds,
    /// Facets made and revoked by operations whose completions have no room.
    FullFacets,
    /// Calls to a foreign server that are cancelled, or whose callers end.
    LostCalls,
    /// Siblings that park for a moment while others sleep for as long.
    Timeouts,
    /// Ends the process while siblings compute, park, sleep and call.
    End,
    /// Ends the process by a fault.
    Fault,
    /// Console reads that are cancelled and begun again; one stays.
    ConsoleReads,
    /// Newlines for the console, eight writes an entry.
    Newlines,
    /// Closes an endpoint with as many receives as it takes.
    Close,
    /// A thread ends that has received as many calls as it may.
    ReceiverEnds,
    /// Makes threads until it may not; the answer's second word is how many there are.
    Threads,
    /// Fills the queue of the observer's endpoint, and stays there.
    Queue,
    /// As `Compute`, in a sibling.
    ComputeInASibling,
    /// Maps as many pages as the second word says, and keeps them.
    Hold,
    /// Makes as many siblings as the second word says, which wait for good.
    Crowd,
    /// Begins as many receives at its endpoint as the second word says, which wait for good.
    Receive,
    /// Ends the process.
    Leave,
    /// Closes the endpoint.
    Shut,
    /// Maps as many pages as the second word says and unmaps them, again and again.
    Free,
    /// As many console writes in an entry as the second word says, again and again.
    Flood,
    /// As many siblings as the second word says, one after the other, each with operations pending when it ends.
    Exits,
    /// Memory objects until slots or frames are used up, mapped, sent and released.
    Objects,
    /// The trace started, flooded with marks, read and stopped, again and again.
    Trace,
    /// All that the directory tells, page by page, and random bytes.
    Readers,
}

impl Order {
    /// Every order, by number.
    pub const ALL: [Self; 36] = [
        Self::Compute,
        Self::Rings,
        Self::Cells,
        Self::Credits,
        Self::Handles,
        Self::Facets,
        Self::Sleepers,
        Self::Parkers,
        Self::Yields,
        Self::Messages,
        Self::Segments,
        Self::Bursts,
        Self::PendingEnds,
        Self::FullFacets,
        Self::LostCalls,
        Self::Timeouts,
        Self::End,
        Self::Fault,
        Self::ConsoleReads,
        Self::Newlines,
        Self::Close,
        Self::ReceiverEnds,
        Self::Threads,
        Self::Queue,
        Self::ComputeInASibling,
        Self::Hold,
        Self::Crowd,
        Self::Receive,
        Self::Leave,
        Self::Shut,
        Self::Free,
        Self::Flood,
        Self::Exits,
        Self::Objects,
        Self::Trace,
        Self::Readers,
    ];

    /// The order with that number.
    pub fn of(number: u16) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

// Each is at its own number.
const _: () = {
    let mut number = 0;
    while number < Order::ALL.len() {
        assert!(Order::ALL[number] as usize == number);
        number += 1;
    }
};
