//! What a guest under test tells its harness: the exit port's codes and the framed records.
//!
//! Two of the three witnesses of a verdict are defined here: the code a guest writes to
//! [`EXIT_PORT`] and the [`Record`]s it sends over the second serial port. The third, the
//! count, is carried by the records themselves ([`Record::Plan`] and [`Record::Done`]).
//!
//! The same crate is compiled into kernels, user programs and the host's runner, so both ends
//! agree by construction. It allocates nothing, holds no lock and never panics: the
//! [`Decoder`] reads bytes a broken guest may have made up.
//!
//! # Wire format
//!
//! A frame is `00 <COBS of the body> 00`. The body is
//!
//! | bytes | meaning |
//! |---|---|
//! | 1 | [`PROTOCOL_VERSION`] |
//! | 1 | kind of record |
//! | 4 | sequence number, little endian, 0 for the first frame of a boot |
//! | n | fields in the order the record declares them: `u32`/`u64` little endian, text as one length byte and UTF-8 |
//! | 4 | CRC-32C of everything before it, little endian |
//!
//! The zero before a frame cuts off whatever a writer that was stopped midway left behind, so
//! one damaged frame never takes its successor along. An empty frame means nothing.
#![no_std]

mod decode;
mod encode;
mod exit;
mod frame;
mod record;

pub use decode::{Damage, Decoder, Item};
pub use encode::{Encoder, Sink};
pub use exit::{EXIT_PORT, Exit};
pub use frame::{BODY_MAX, FRAME_MAX, PROTOCOL_VERSION};
pub use record::{BadId, ID_MAX, NAME_MAX, PATH_MAX, Record, TEXT_MAX, check_id};

/// I/O base of the serial port that carries console text for people (COM1).
pub const CONSOLE_PORT: u16 = 0x3f8;

/// I/O base of the serial port that carries records (COM2).
pub const RECORDS_PORT: u16 = 0x2f8;
