//! Why a channel operation did not happen. A value that was not sent comes back in the error.

use core::fmt;

macro_rules! send_error {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident => $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum $name<T> {
            $($(#[$case_doc])* $case(T),)*
        }

        impl<T> $name<T> {
            /// The value that was not sent.
            pub fn into_inner(self) -> T {
                match self {
                    $(Self::$case(value) => value,)*
                }
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self {
                    $(Self::$case(_) => concat!(stringify!($case), "(..)"),)*
                })
            }
        }

        impl<T> fmt::Display for $name<T> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self {
                    $(Self::$case(_) => $text,)*
                })
            }
        }

        impl<T> core::error::Error for $name<T> {}
    };
}

macro_rules! recv_error {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident => $text:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(match self {
                    $(Self::$case => $text,)*
                })
            }
        }

        impl core::error::Error for $name {}
    };
}

send_error! {
    /// Why `send` failed.
    SendError {
        /// The channel is closed, or every receiver is gone.
        Disconnected => "sending on a closed channel",
        /// The fiber that waited has been cancelled.
        Cancelled => "the sending fiber was cancelled",
    }
}

send_error! {
    /// Why `try_send` failed.
    TrySendError {
        /// There is no place, and nobody receives.
        Full => "sending on a full channel",
        /// The channel is closed, or every receiver is gone.
        Disconnected => "sending on a closed channel",
    }
}

send_error! {
    /// Why `send_timeout` or `send_deadline` failed.
    SendTimeoutError {
        /// The time is over.
        Timeout => "timed out waiting on a send operation",
        /// The channel is closed, or every receiver is gone.
        Disconnected => "sending on a closed channel",
        /// The fiber that waited has been cancelled.
        Cancelled => "the sending fiber was cancelled",
    }
}

recv_error! {
    /// Why `recv` failed.
    RecvError {
        /// The channel is closed and empty, or empty with every sender gone.
        Disconnected => "receiving on an empty and closed channel",
        /// The fiber that waited has been cancelled.
        Cancelled => "the receiving fiber was cancelled",
    }
}

recv_error! {
    /// Why `try_recv` failed.
    TryRecvError {
        /// There is nothing now.
        Empty => "receiving on an empty channel",
        /// The channel is closed and empty, or empty with every sender gone.
        Disconnected => "receiving on an empty and closed channel",
    }
}

recv_error! {
    /// Why `recv_timeout` or `recv_deadline` failed.
    RecvTimeoutError {
        /// The time is over.
        Timeout => "timed out waiting on a receive operation",
        /// The channel is closed and empty, or empty with every sender gone.
        Disconnected => "receiving on an empty and closed channel",
        /// The fiber that waited has been cancelled.
        Cancelled => "the receiving fiber was cancelled",
    }
}

recv_error! {
    /// Why `try_select` chose nothing.
    TrySelectError {
        /// No operation is ready.
        WouldBlock => "all operations in select would block",
    }
}

recv_error! {
    /// Why a select with an end chose nothing.
    SelectTimeoutError {
        /// The time is over.
        Timeout => "timed out waiting on select",
        /// The fiber that waited has been cancelled.
        Cancelled => "the selecting fiber was cancelled",
    }
}

recv_error! {
    /// Why `try_ready` found nothing.
    TryReadyError {
        /// No operation is ready.
        WouldBlock => "all operations would block",
    }
}

recv_error! {
    /// Why `ready`, with or without an end, found nothing.
    ReadyTimeoutError {
        /// The time is over.
        Timeout => "timed out waiting for an operation to be ready",
        /// The fiber that waited has been cancelled.
        Cancelled => "the waiting fiber was cancelled",
    }
}

/// Questions to an error, each about one case of it.
macro_rules! asks {
    ($error:ident $(<$t:ident>)? { $($name:ident => $case:pat, $doc:literal;)* }) => {
        impl$(<$t>)? $error$(<$t>)? {
            $(
                #[doc = $doc]
                pub fn $name(&self) -> bool {
                    matches!(self, $case)
                }
            )*
        }
    };
}

asks! { SendError<T> {
    is_disconnected => Self::Disconnected(_), "Whether the channel is closed.";
    is_cancelled => Self::Cancelled(_), "Whether the fiber was cancelled.";
} }
asks! { TrySendError<T> {
    is_full => Self::Full(_), "Whether there was no place.";
    is_disconnected => Self::Disconnected(_), "Whether the channel is closed.";
} }
asks! { SendTimeoutError<T> {
    is_timeout => Self::Timeout(_), "Whether the time was over.";
    is_disconnected => Self::Disconnected(_), "Whether the channel is closed.";
    is_cancelled => Self::Cancelled(_), "Whether the fiber was cancelled.";
} }
asks! { RecvError {
    is_disconnected => Self::Disconnected, "Whether the channel is closed.";
    is_cancelled => Self::Cancelled, "Whether the fiber was cancelled.";
} }
asks! { TryRecvError {
    is_empty => Self::Empty, "Whether there was nothing.";
    is_disconnected => Self::Disconnected, "Whether the channel is closed.";
} }
asks! { RecvTimeoutError {
    is_timeout => Self::Timeout, "Whether the time was over.";
    is_disconnected => Self::Disconnected, "Whether the channel is closed.";
    is_cancelled => Self::Cancelled, "Whether the fiber was cancelled.";
} }

impl<T> From<SendError<T>> for SendTimeoutError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Disconnected(value) => Self::Disconnected(value),
            SendError::Cancelled(value) => Self::Cancelled(value),
        }
    }
}

/// A wait that was cancelled found no place.
impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(error: SendError<T>) -> Self {
        match error {
            SendError::Disconnected(value) => Self::Disconnected(value),
            SendError::Cancelled(value) => Self::Full(value),
        }
    }
}

impl From<RecvError> for RecvTimeoutError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => Self::Disconnected,
            RecvError::Cancelled => Self::Cancelled,
        }
    }
}

/// A wait that was cancelled found nothing.
impl From<RecvError> for TryRecvError {
    fn from(error: RecvError) -> Self {
        match error {
            RecvError::Disconnected => Self::Disconnected,
            RecvError::Cancelled => Self::Empty,
        }
    }
}
