//! Why the loader does not boot: one readable sentence for the screen and the serial line.

use core::fmt;

use arrayvec::ArrayString;

use crate::config::ConfigError;
use crate::image::ImageError;
use crate::relocate::RelocationError;
use crate::requests::RequestError;
use crate::ustar::ArchiveError;

/// A name kept for a message: cut after 96 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(ArrayString<96>);

impl Name {
    /// Keeps as much of `text` as fits.
    pub fn new(text: &str) -> Self {
        let mut name = ArrayString::new();
        for c in text.chars() {
            if name.try_push(c).is_err() {
                break;
            }
        }
        Self(name)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Every reason to stop before the kernel runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The configuration is wrong.
    Config(ConfigError),
    /// The direct-boot bundle is wrong.
    Archive(ArchiveError),
    /// The executable is wrong.
    Image(ImageError),
    /// Its relocations are wrong.
    Relocation(RelocationError),
    /// Its requests are wrong or cannot be honoured.
    Request(RequestError),
    /// A file is not on the boot volume.
    NotFound(Name),
    /// A file could not be read.
    Unreadable(Name),
    /// A file does not have the hash the configuration gives.
    HashDiffers(Name),
    /// A string does not fit or has a byte a C string cannot hold.
    String(Name),
    /// No run of pages long enough.
    OutOfMemory {
        /// How many pages were wanted.
        pages: u64,
    },
    /// A physical range the loader cannot reach.
    Unreachable {
        /// Its address.
        base: u64,
        /// Its bytes.
        length: u64,
    },
    /// The firmware's memory map has more entries than the loader keeps.
    MapTooLong {
        /// How many it keeps.
        limit: usize,
    },
    /// The firmware reports no usable memory.
    NoMemory,
    /// The firmware has put the local APICs in x2APIC mode and it cannot be left.
    X2apicLocked,
    /// Anything only one front end can run into.
    Firmware(Name),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Archive(error) => error.fmt(f),
            Self::Image(error) => error.fmt(f),
            Self::Relocation(error) => error.fmt(f),
            Self::Request(error) => error.fmt(f),
            Self::NotFound(path) => write!(f, "{path} is not on the boot volume"),
            Self::Unreadable(path) => write!(f, "{path} cannot be read from the boot volume"),
            Self::HashDiffers(path) => {
                write!(f, "{path} does not have the BLAKE2b hash given after `#`")
            }
            Self::String(what) => {
                write!(f, "`{what}` is too long or contains a zero byte; C strings hold neither")
            }
            Self::OutOfMemory { pages } => write!(
                f,
                "no {} KiB of contiguous memory below 4 GiB; give the machine more memory or load less",
                pages.saturating_mul(4)
            ),
            Self::Unreachable { base, length } => {
                write!(f, "memory at {base:#x} ({length} bytes) is not reachable by the loader")
            }
            Self::MapTooLong { limit } => {
                write!(f, "the memory map has more than {limit} pieces")
            }
            Self::NoMemory => f.write_str("the firmware reports no usable memory below 4 GiB"),
            Self::X2apicLocked => f.write_str(
                "the firmware locked x2APIC mode; the kernel must set bit 0 of the MP request's flags",
            ),
            Self::Firmware(what) => write!(f, "{what}"),
        }
    }
}

macro_rules! wraps {
    ($($error:ty => $variant:ident),* $(,)?) => {$(
        impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Self::$variant(error)
            }
        }
    )*};
}

wraps! {
    ConfigError => Config,
    ArchiveError => Archive,
    ImageError => Image,
    RelocationError => Relocation,
    RequestError => Request,
}
