//! What is wrong with a manifest, and what would be right.

use core::fmt;

use crate::{Name, ProfileError, limits};

/// Why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The blob is empty, not a whole number of words, or too long.
    Length(usize),
    /// The blob does not begin at a multiple of 8.
    Unaligned,
    /// The blob is not a Cap'n Proto message of this schema.
    Malformed,
    /// The blob is a message, but not in canonical form: it was changed, or made by another
    /// tool than the build.
    NotCanonical,
    /// A text is not UTF-8.
    NotUtf8,
    /// There are none, or too many.
    ProcessCount(u32),
    /// The process with this number has a name that is empty, too long or has control
    /// characters.
    ProcessName(u32),
    /// Two processes have one name.
    DuplicateProcess(Name),
    /// The process's binary has a bad name.
    BinaryName(Name),
    /// The process's binary is not a boot module.
    UnknownBinary(Name, Name),
    /// A number of the process is out of range.
    Profile(Name, ProfileError),
    /// The process's arguments and environment do not fit a page.
    StartPage(Name),
    /// The variable with this number has a name that is empty, too long, or has control characters or `=`.
    VariableName(Name, u32),
    /// The process has more grants than a CapSet page or its capability table holds.
    GrantCount(Name, u32, u32),
    /// The grant with this number has a bad name.
    GrantName(Name, u32),
    /// Two grants of the process have one name.
    DuplicateGrant(Name, Name),
    /// The grant is of a kind this schema does not know.
    UnknownGrant(Name, Name),
    /// The grant names an endpoint with a bad name.
    EndpointName(Name, Name),
    /// The grant of an endpoint does not say what is served there.
    EndpointInterface(Name, Name),
    /// The grant's ceiling for weights is not a weight.
    WeightCeiling(Name, Name, u16),
    /// There are too many endpoints.
    EndpointCount,
    /// A second grant is the receiving side of the endpoint.
    SecondReceiver(Name, Name),
    /// The process is a client of an endpoint that nobody receives on.
    NoReceiver(Name, Name),
    /// The kernel starts the process and not the receiver of an endpoint that it is a client of.
    ReceiverWaits(Name, Name),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = limits::NAME_BYTES;
        match self {
            Self::Length(bytes) => write!(
                f,
                "the manifest has {bytes} bytes; it has 8 to {} and a multiple of 8",
                limits::MANIFEST_BYTES
            ),
            Self::Unaligned => f.write_str("the manifest is not at a multiple of 8 in memory"),
            Self::Malformed => f.write_str("the manifest is not a message of this schema"),
            Self::NotCanonical => f.write_str(
                "the manifest is not in canonical form: it was changed after it was built",
            ),
            Self::NotUtf8 => f.write_str("a text of the manifest is not UTF-8"),
            Self::ProcessCount(count) => {
                write!(f, "the manifest has {count} processes; it has 1 to {}", limits::PROCESSES)
            }
            Self::ProcessName(index) => write!(
                f,
                "the name of process {index} is not 1 to {longest} bytes without control characters"
            ),
            Self::DuplicateProcess(process) => {
                write!(f, "two processes are called {process}; names are unique")
            }
            Self::BinaryName(process) => write!(
                f,
                "process {process}: the name of its binary is not 1 to {longest} bytes without control characters"
            ),
            Self::UnknownBinary(process, binary) => {
                write!(f, "process {process}: its binary {binary} is not among the boot modules")
            }
            Self::Profile(process, error) => write!(f, "process {process}: {error}"),
            Self::StartPage(process) => write!(
                f,
                "process {process}: arguments and environment do not fit a page of 4096 bytes"
            ),
            Self::VariableName(process, index) => write!(
                f,
                "process {process}: the name of variable {index} is not 1 to {longest} bytes without '=' and control characters"
            ),
            Self::GrantCount(process, count, most) => {
                write!(f, "process {process} has {count} grants; it has at most {most}")
            }
            Self::GrantName(process, index) => write!(
                f,
                "process {process}: the name of grant {index} is not 1 to {longest} bytes without control characters"
            ),
            Self::DuplicateGrant(process, grant) => write!(
                f,
                "process {process}: two grants are called {grant}; names are unique in a process"
            ),
            Self::UnknownGrant(process, grant) => {
                write!(f, "process {process}: grant {grant} is of a kind this kernel does not know")
            }
            Self::EndpointName(process, grant) => write!(
                f,
                "process {process}: grant {grant} names an endpoint not in 1 to {longest} bytes without control characters"
            ),
            Self::EndpointInterface(process, grant) => write!(
                f,
                "process {process}: grant {grant} names no interface; `interfaceId` is the id of what its receiver serves"
            ),
            Self::WeightCeiling(process, grant, ceiling) => write!(
                f,
                "process {process}: grant {grant} has a weight ceiling of {ceiling}; it is 1 to 1024, or left out"
            ),
            Self::EndpointCount => {
                write!(f, "the manifest has more than {} endpoints", limits::ENDPOINTS)
            }
            Self::SecondReceiver(process, endpoint) => write!(
                f,
                "process {process}: endpoint {endpoint} already has its receiver; grant `client` for others"
            ),
            Self::NoReceiver(process, endpoint) => write!(
                f,
                "process {process}: no process receives on endpoint {endpoint}; grant `endpoint` to one"
            ),
            Self::ReceiverWaits(process, endpoint) => write!(
                f,
                "process {process} is marked `boot`, and the receiver of its endpoint {endpoint} is not; mark both"
            ),
        }
    }
}

impl core::error::Error for Error {}

impl From<capnp::Error> for Error {
    fn from(_: capnp::Error) -> Self {
        Self::Malformed
    }
}

impl From<core::str::Utf8Error> for Error {
    fn from(_: core::str::Utf8Error) -> Self {
        Self::NotUtf8
    }
}
