//! The body of a frame: a record between version, sequence number and checksum.
//!
//! Writing truncates text that is too long, so a record always fits; reading accepts nothing
//! that writing could not have made.
//!
//! Decided in ADR 31.

use crate::record::{ID_MAX, NAME_MAX, PATH_MAX, Record, TEXT_MAX, check_id};
use crc::{CRC_32_ISCSI, Crc, NoTable};

/// First byte of every body; a reader knows exactly one version.
pub const PROTOCOL_VERSION: u8 = 1;

const HEADER: usize = 1 + 1 + 4;
const CHECKSUM: usize = 4;

/// Longest body in bytes: a `Fail` with every text at its limit.
pub const BODY_MAX: usize = HEADER + (1 + ID_MAX) + 4 + (1 + PATH_MAX) + (1 + TEXT_MAX) + CHECKSUM;

/// Longest frame in bytes between its zeros: COBS adds one byte in 254, rounded up.
pub const FRAME_MAX: usize = BODY_MAX + BODY_MAX.div_ceil(254);

/// Without a table: frames are few and short, and a kernel test image stays small.
const CRC: Crc<u32, NoTable> = Crc::<u32, NoTable>::new(&CRC_32_ISCSI);

mod kind {
    pub const PLAN: u8 = 1;
    pub const RUN: u8 = 2;
    pub const OK: u8 = 3;
    pub const FAIL: u8 = 4;
    pub const SKIP: u8 = 5;
    pub const METRIC: u8 = 6;
    pub const DONE: u8 = 7;
}

/// A body under construction. Sized for the longest record; what does not fit is dropped, and
/// with every text cut to its limit everything fits.
pub(crate) struct Body {
    bytes: [u8; BODY_MAX],
    len: usize,
}

impl Body {
    pub(crate) fn new(sequence: u32, record: &Record<'_>) -> Body {
        let mut body = Body { bytes: [0; BODY_MAX], len: 0 };
        body.put(&[PROTOCOL_VERSION, kind_of(record)]);
        body.put(&sequence.to_le_bytes());
        match *record {
            Record::Plan { index, total, id } => {
                body.put(&index.to_le_bytes());
                body.put(&total.to_le_bytes());
                body.text(head(id, ID_MAX));
            }
            Record::Run { id } | Record::Ok { id } => body.text(head(id, ID_MAX)),
            Record::Fail { id, line, file, message } => {
                body.text(head(id, ID_MAX));
                body.put(&line.to_le_bytes());
                body.text(tail(file, PATH_MAX));
                body.text(head(message, TEXT_MAX));
            }
            Record::Skip { id, reason } => {
                body.text(head(id, ID_MAX));
                body.text(head(reason, TEXT_MAX));
            }
            Record::Metric { id, name, value, unit } => {
                body.text(head(id, ID_MAX));
                body.text(head(name, NAME_MAX));
                body.put(&value.to_le_bytes());
                body.text(head(unit, NAME_MAX));
            }
            Record::Done { passed, failed, skipped } => {
                body.put(&passed.to_le_bytes());
                body.put(&failed.to_le_bytes());
                body.put(&skipped.to_le_bytes());
            }
        }
        let checksum = CRC.checksum(body.bytes());
        body.put(&checksum.to_le_bytes());
        body
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(bytes);
            self.len = end;
        }
    }

    fn text(&mut self, text: &str) {
        // Every limit is below 256 (asserted below), so the cast keeps the length.
        self.put(&[text.len() as u8]);
        self.put(text.as_bytes());
    }
}

const _: () =
    assert!(ID_MAX < 256 && NAME_MAX < 256 && PATH_MAX < 256 && TEXT_MAX < 256, "one length byte");
const _: () = assert!(2 * NAME_MAX + 8 < PATH_MAX + TEXT_MAX, "a Metric is shorter than a Fail");

fn kind_of(record: &Record<'_>) -> u8 {
    match record {
        Record::Plan { .. } => kind::PLAN,
        Record::Run { .. } => kind::RUN,
        Record::Ok { .. } => kind::OK,
        Record::Fail { .. } => kind::FAIL,
        Record::Skip { .. } => kind::SKIP,
        Record::Metric { .. } => kind::METRIC,
        Record::Done { .. } => kind::DONE,
    }
}

/// The longest prefix of at most `max` bytes that ends between characters.
fn head(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or_default()
}

/// The longest suffix of at most `max` bytes that begins between characters.
fn tail(text: &str, max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(max))..).unwrap_or_default()
}

/// Reads a body; `None` if no encoder could have written it.
pub(crate) fn parse(body: &[u8]) -> Option<(u32, Record<'_>)> {
    let (content, checksum) = body.split_last_chunk::<CHECKSUM>()?;
    if CRC.checksum(content) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut fields = Fields(content);
    if fields.u8()? != PROTOCOL_VERSION {
        return None;
    }
    let kind = fields.u8()?;
    let sequence = fields.u32()?;
    let record = match kind {
        kind::PLAN => Record::Plan { index: fields.u32()?, total: fields.u32()?, id: fields.id()? },
        kind::RUN => Record::Run { id: fields.id()? },
        kind::OK => Record::Ok { id: fields.id()? },
        kind::FAIL => Record::Fail {
            id: fields.id()?,
            line: fields.u32()?,
            file: fields.text(PATH_MAX)?,
            message: fields.text(TEXT_MAX)?,
        },
        kind::SKIP => Record::Skip { id: fields.id()?, reason: fields.text(TEXT_MAX)? },
        kind::METRIC => Record::Metric {
            id: fields.id()?,
            name: fields.text(NAME_MAX)?,
            value: fields.u64()?,
            unit: fields.text(NAME_MAX)?,
        },
        kind::DONE => {
            Record::Done { passed: fields.u32()?, failed: fields.u32()?, skipped: fields.u32()? }
        }
        _ => return None,
    };
    fields.0.is_empty().then_some((sequence, record))
}

/// What is left of a body to read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    fn text(&mut self, max: usize) -> Option<&'a str> {
        let len = usize::from(self.u8()?);
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        if len > max {
            return None;
        }
        core::str::from_utf8(text).ok()
    }

    fn id(&mut self) -> Option<&'a str> {
        self.text(ID_MAX).filter(|id| check_id(id).is_ok())
    }
}
