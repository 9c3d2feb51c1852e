//! What an SQE asks for.

/// The operation of an SQE. Numbers are fixed; a number that is not here completes with
/// [`Status::UnsupportedOpcode`](crate::Status::UnsupportedOpcode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Opcode {
    /// Completes at once.
    Nop = 0,
    /// Calls a method of the capability; completes with its results.
    Call = 1,
    /// Waits for a call on an endpoint; completes with its parameters.
    Recv = 2,
    /// Answers a received call; with `THEN_RECV` also waits for the next.
    Return = 3,
    /// Gives a capability slot back.
    Release = 4,
    /// Ends the pending operation of this ring that has the given user data.
    Cancel = 5,
    /// Blocks the thread while a word in memory has the expected value.
    Park = 6,
    /// Wakes threads parked on a word.
    Unpark = 7,
    /// Lets another thread run.
    Yield = 8,
    /// Reserved; completes as unsupported.
    Finish = 9,
    /// Park and resume without a peer; only in images built to measure.
    ParkBench = 0x80,
}

impl Opcode {
    /// The operation with this number.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Nop,
            1 => Self::Call,
            2 => Self::Recv,
            3 => Self::Return,
            4 => Self::Release,
            5 => Self::Cancel,
            6 => Self::Park,
            7 => Self::Unpark,
            8 => Self::Yield,
            9 => Self::Finish,
            0x80 => Self::ParkBench,
            _ => return None,
        })
    }

    /// Whether only the ring's own thread, inside `cap_enter`, may dispatch it.
    #[inline]
    pub const fn is_thread_owned(self) -> bool {
        matches!(self, Self::Call | Self::Park | Self::ParkBench)
    }
}
