//! What a fiber can wait for.

/// What a fiber waits for, for dumps and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// Nothing.
    Nothing = 0,
    /// A place in a channel, or a receiver.
    Send = 1,
    /// A value from a channel.
    Receive = 2,
    /// One of several channels.
    Select = 3,
    /// A point in time.
    Timer = 4,
    /// The end of a fiber.
    Join = 5,
    /// The end of all fibers of a scope.
    Scope = 6,
    /// A mutex.
    Mutex = 7,
    /// A condition variable.
    Condvar = 8,
    /// The completion of an operation of the system.
    Completion = 9,
    /// A future.
    Future = 10,
}

impl What {
    #[cfg(not(loom))]
    pub(crate) fn of(code: u8) -> Self {
        [
            Self::Nothing,
            Self::Send,
            Self::Receive,
            Self::Select,
            Self::Timer,
            Self::Join,
            Self::Scope,
            Self::Mutex,
            Self::Condvar,
            Self::Completion,
            Self::Future,
        ]
        .into_iter()
        .find(|what| *what as u8 == code)
        .unwrap_or(Self::Nothing)
    }
}
