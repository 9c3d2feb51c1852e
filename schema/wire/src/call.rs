//! The client's side: how generated clients reach a service.

use core::fmt;
use core::marker::PhantomData;

use abi_types::{CapSlot, InterfaceTag, Status};

use crate::{Encode, Exception, Message, Method, TransferIndex, Value, WireError};

/// A capability to send along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Where it is in the sender's table.
    pub slot: CapSlot,
    /// Whether the sender gives it up, rather than sharing it.
    pub is_move: bool,
}

/// What came back from a call that reached its service. Valid until the transport's next call.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'t> {
    /// Whether the payload is an exception.
    pub is_exception: bool,
    /// The payload, 8-aligned.
    pub bytes: &'t [u8],
    /// Capabilities that came along, in the receiver's table.
    pub transfers: &'t [CapSlot],
}

/// What is called, and what may come back with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The capability.
    pub target: CapSlot,
    /// The interface that is meant.
    pub interface: InterfaceTag,
    /// The method's number in it.
    pub method: u16,
    /// How many capabilities the caller takes with the results.
    pub accepts: u16,
}

/// A way to call a capability and wait for the answer.
pub trait Transport {
    /// Calls a method; a capability of another interface at its target is `wrongInterface`, and nothing
    /// is done. The transport chooses where the parameters are
    /// written (an inline slot, a registered buffer) by their size; the answer is in memory of
    /// its own. A status other than ok or exception is an error.
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status>;
}

impl<T: Transport + ?Sized> Transport for &mut T {
    fn call<P: Encode>(
        &mut self,
        callee: Callee,
        params: &P,
        transfers: &[Transfer],
    ) -> Result<Reply<'_>, Status> {
        (**self).call(callee, params, transfers)
    }
}

/// Why a call has no results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// It did not reach the service, or its answer did not get back.
    Status(Status),
    /// The service refused.
    Exception(Exception),
    /// What came back is not what the schema says.
    Answer(WireError),
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(Status::WrongInterface) => f.write_str(
                "the slot holds a capability of another interface than the one that was called; \
                 the manifest or whoever gave it must give one of this interface",
            ),
            Self::Status(status) => write!(f, "the call ended with status {status:?}"),
            Self::Exception(exception) => exception.fmt(f),
            Self::Answer(error) => write!(f, "the answer is not in the schema's form: {error}"),
        }
    }
}

impl core::error::Error for CallError {}

/// Results that borrow from the reply: read them with [`get`](Self::get).
pub struct Reading<'t, M: Method> {
    message: Message<'t>,
    transfers: &'t [CapSlot],
    method: PhantomData<M>,
}

impl<'t, M: Method> Reading<'t, M> {
    /// Looks at a reply.
    pub fn new(reply: Reply<'t>) -> Result<Self, CallError> {
        let message = message_of(reply)?;
        Ok(Self { message, transfers: reply.transfers, method: PhantomData })
    }

    /// The results; once.
    pub fn get(&self) -> Result<M::Results<'_>, CallError> {
        self.message.get().map_err(CallError::Answer)
    }

    /// The capability that a field of the results refers to; `None` if it came without.
    pub fn capability(&self, field: Option<TransferIndex>) -> Option<CapSlot> {
        self.transfers.get(usize::from(field?.0)).copied()
    }

    /// The capabilities the results' positions refer to.
    pub const fn transfers(&self) -> &'t [CapSlot] {
        self.transfers
    }
}

/// The results in a reply, for results that borrow nothing.
pub fn results_of<V: for<'m> Value<'m>>(reply: Reply<'_>) -> Result<V, CallError> {
    message_of(reply)?.get().map_err(CallError::Answer)
}

fn message_of(reply: Reply<'_>) -> Result<Message<'_>, CallError> {
    if reply.is_exception {
        let exception = Exception::decode(reply.bytes).map_err(CallError::Answer)?;
        return Err(CallError::Exception(exception));
    }
    Message::new(reply.bytes).map_err(CallError::Answer)
}
