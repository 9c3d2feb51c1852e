//! What the tester asks of a peer, as methods of the peer's command endpoint.
#![no_std]

/// Starts the peer's worker on the [`Work`] in the first word.
pub const START: u16 = 0;
/// Answers, then ends with [`EXIT_CODE`].
pub const EXIT: u16 = 1;
/// Answers, then ends by a fault.
pub const FAULT: u16 = 2;
/// Answers.
pub const PING: u16 = 3;
/// Answers, then ends with [`EXIT_CODE`] after the nanoseconds in the first word.
pub const EXIT_LATER: u16 = 4;

/// What a peer that was asked to ends with.
pub const EXIT_CODE: i64 = 3;

/// What a worker does; what it waits for never comes, unless it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Work {
    /// Calls the tester and waits for the answer.
    Call = 0,
    /// Receives; keeps the call it gets.
    Receive = 1,
    /// Receives, answers, and does not receive again.
    AnswerOnce = 2,
    /// Sleeps.
    Sleep = 3,
    /// Joins a thread.
    Join = 4,
    /// Parks.
    Park = 5,
    /// Reads from the console.
    Read = 6,
    /// Waits in `cap_enter` with nothing under way.
    Wait = 7,
    /// Runs.
    Spin = 8,
    /// Echoes messages by address, of up to 64 KiB.
    EchoLarge = 9,
    /// Calls the tester again and again.
    CallMany = 10,
    /// Answers calls, one entry each.
    Serve = 11,
    /// Answers calls, and never waits for one in the kernel.
    Poll = 12,
    /// Calls the tester again and again, with 64 KiB by address.
    CallLarge = 13,
    /// Makes threads that end at once, and joins them.
    Spawn = 14,
    /// Calls the kernel with 64 KiB of parameters, many calls an entry, and never waits.
    Batch = 15,
}

impl Work {
    /// All of them, by number.
    pub const ALL: [Work; 16] = [
        Work::Call,
        Work::Receive,
        Work::AnswerOnce,
        Work::Sleep,
        Work::Join,
        Work::Park,
        Work::Read,
        Work::Wait,
        Work::Spin,
        Work::EchoLarge,
        Work::CallMany,
        Work::Serve,
        Work::Poll,
        Work::CallLarge,
        Work::Spawn,
        Work::Batch,
    ];
}
