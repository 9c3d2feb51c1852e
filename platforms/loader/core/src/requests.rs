//! What the kernel asks for: finding the requests in the loaded image and reading them.
//!
//! Discovery only reads. The slots found are written once, by [`crate::respond`], when every
//! response exists.

use core::fmt;

use arrayvec::ArrayVec;

use crate::memory::get_u64;
use crate::protocol::{
    BASE_REVISION, BASE_TAG, END_MARKER, Feature, REQUEST, REQUEST_HEADER, START_MARKER,
};

/// The most requests, known and unknown, one kernel may carry.
pub const MAX_REQUESTS: usize = 64;

/// A request in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Offset of the request in the image.
    pub offset: usize,
    /// Its revision.
    pub revision: u64,
}

/// What is wrong with the requests, or cannot be honoured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The end marker precedes the start marker.
    Markers,
    /// No base revision tag: the kernel wants revision 0.
    NoBaseTag,
    /// Two base revision tags.
    TwoBaseTags,
    /// A base revision this loader does not speak.
    BaseRevision(u64),
    /// The same identifier twice.
    Duplicate([u64; 2]),
    /// More than [`MAX_REQUESTS`].
    TooMany,
    /// A request's members reach past the image.
    Truncated(Feature),
    /// Paging modes whose order is wrong: preferred, maximum, minimum.
    PagingOrder(u64, u64, u64),
    /// More levels than this machine or the configuration allows.
    Paging {
        /// The fewest levels the kernel and the configuration accept.
        wanted: u8,
        /// The most that can be had.
        available: u8,
    },
    /// The processor cannot mark pages non-executable.
    NoExecuteMissing,
    /// An entry point outside the executable segments.
    EntryPoint(u64),
    /// An internal module's descriptor or strings lie outside the image.
    InternalModule(u64),
    /// An internal module is to be decompressed.
    Compressed,
    /// A stack size that cannot be had.
    StackSize(u64),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("kernel requests: ")?;
        match self {
            Self::Markers => f.write_str("the end marker stands before the start marker"),
            Self::NoBaseTag => write!(
                f,
                "no base revision tag, so revision 0 is meant; this loader speaks {BASE_REVISION}"
            ),
            Self::TwoBaseTags => f.write_str("two base revision tags; expected one"),
            Self::BaseRevision(n) => {
                write!(f, "base revision {n} is wanted; this loader speaks {BASE_REVISION}")
            }
            Self::Duplicate([a, b]) => write!(
                f,
                "request {a:#018x} {b:#018x}{} is there twice; each may be there once",
                Feature::from_id([*a, *b]).map_or("", Feature::name)
            ),
            Self::TooMany => write!(f, "more than {MAX_REQUESTS}"),
            Self::Truncated(feature) => {
                write!(f, "{} reaches past the end of the image", feature.name())
            }
            Self::PagingOrder(mode, max, min) => write!(
                f,
                "paging mode {mode} with maximum {max} and minimum {min}; expected minimum <= mode <= maximum"
            ),
            Self::Paging { wanted, available } => write!(
                f,
                "{wanted}-level paging is wanted; processor and configuration allow {available} levels"
            ),
            Self::NoExecuteMissing => {
                f.write_str("the processor has no no-execute bit, which segment permissions need")
            }
            Self::EntryPoint(address) => {
                write!(f, "entry point {address:#x} lies in no executable segment")
            }
            Self::InternalModule(address) => {
                write!(f, "internal module data at {address:#x} lies outside the image")
            }
            Self::Compressed => {
                f.write_str("compressed internal modules are not served; store them plain")
            }
            Self::StackSize(bytes) => write!(f, "a stack of {bytes} bytes cannot be had"),
        }
    }
}

/// The requests of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requests {
    /// Offset of the base revision tag.
    pub base_tag: usize,
    found: ArrayVec<([u64; 2], Slot), MAX_REQUESTS>,
}

impl Requests {
    /// Finds the requests in the image. `parts` are the file-backed ranges of it, ascending:
    /// the rest is zero and can hold none.
    pub fn discover(
        image: &[u8],
        parts: impl Iterator<Item = (usize, usize)> + Clone,
    ) -> Result<Self, RequestError> {
        let (start, end) = marked_area(image, parts.clone());
        if start > end {
            return Err(RequestError::Markers);
        }
        let mut base_tag = None;
        let mut found: ArrayVec<([u64; 2], Slot), MAX_REQUESTS> = ArrayVec::new();
        for (at, word) in words(image, parts) {
            if at < start || at >= end {
                continue;
            }
            if word == BASE_TAG[0] && get_u64(image, at + 8) == Some(BASE_TAG[1]) {
                let wanted = get_u64(image, at + 16).ok_or(RequestError::NoBaseTag)?;
                if base_tag.replace((at, wanted)).is_some() {
                    return Err(RequestError::TwoBaseTags);
                }
            }
            if word == REQUEST[0] && get_u64(image, at + 8) == Some(REQUEST[1]) {
                push_request(image, at, &mut found)?;
            }
        }
        match base_tag {
            Some((base_tag, BASE_REVISION)) => Ok(Self { base_tag, found }),
            Some((_, other)) => Err(RequestError::BaseRevision(other)),
            None => Err(RequestError::NoBaseTag),
        }
    }

    /// The request for `feature`, if there is one.
    pub fn get(&self, feature: Feature) -> Option<Slot> {
        self.found.iter().find(|(id, _)| *id == feature.id()).map(|(_, slot)| *slot)
    }

    /// A request's member: the 8 bytes `offset` after the header.
    pub fn member(&self, image: &[u8], feature: Feature, offset: usize) -> Option<u64> {
        get_u64(image, self.get(feature)?.offset + REQUEST_HEADER + offset)
    }
}

fn push_request(
    image: &[u8],
    at: usize,
    found: &mut ArrayVec<([u64; 2], Slot), MAX_REQUESTS>,
) -> Result<(), RequestError> {
    let word = |index: usize| get_u64(image, at + index * 8);
    // A header that the image's end cuts off is not a request.
    let (Some(a), Some(b), Some(revision), Some(_)) = (word(2), word(3), word(4), word(5)) else {
        return Ok(());
    };
    let id = [a, b];
    if let Some(feature) = Feature::from_id(id) {
        let end = at + REQUEST_HEADER + feature.members() + newer_members(feature, revision);
        if end > image.len() {
            return Err(RequestError::Truncated(feature));
        }
    }
    if found.iter().any(|(other, _)| *other == id) {
        return Err(RequestError::Duplicate(id));
    }
    found.try_push((id, Slot { offset: at, revision })).map_err(|_| RequestError::TooMany)
}

/// Bytes of members that a request has from revision 1 on.
fn newer_members(feature: Feature, revision: u64) -> usize {
    match feature {
        Feature::PagingMode | Feature::Modules if revision >= 1 => 16,
        _ => 0,
    }
}

/// Every aligned word of the file-backed parts.
fn words(
    image: &[u8],
    parts: impl Iterator<Item = (usize, usize)>,
) -> impl Iterator<Item = (usize, u64)> {
    parts.flat_map(move |(start, end)| {
        let start = start.next_multiple_of(8);
        let part = image.get(start..end.min(image.len())).unwrap_or(&[]);
        let (chunks, _) = part.as_chunks::<8>();
        chunks
            .iter()
            .enumerate()
            .map(move |(index, chunk)| (start + index * 8, u64::from_le_bytes(*chunk)))
    })
}

/// From after the last start marker to the first end marker.
fn marked_area(image: &[u8], parts: impl Iterator<Item = (usize, usize)>) -> (usize, usize) {
    let mut area = (0, image.len());
    let mut closed = false;
    for (at, word) in words(image, parts) {
        let follows = |marker: &[u64]| {
            marker.iter().enumerate().all(|(i, w)| get_u64(image, at + i * 8) == Some(*w))
        };
        if word == START_MARKER[0] && follows(&START_MARKER) {
            area.0 = at + 32;
        }
        if !closed && word == END_MARKER[0] && follows(&END_MARKER) {
            area.1 = at;
            closed = true;
        }
    }
    area
}

/// The paging mode the kernel asks for, in levels: preferred, most, least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagingWish {
    /// Preferred mode.
    pub mode: u64,
    /// Highest accepted mode.
    pub max: u64,
    /// Lowest accepted mode.
    pub min: u64,
}

/// How many levels to use.
///
/// Without a request 4 levels are used; revision 0 of the request means maximum = mode and
/// minimum = 4 levels. The configuration may narrow the choice.
pub fn choose_levels(
    wish: Option<PagingWish>,
    machine_has_5: bool,
    config_max: Option<u8>,
    config_min: Option<u8>,
) -> Result<u8, RequestError> {
    let wish = wish.unwrap_or(PagingWish { mode: 0, max: 0, min: 0 });
    if wish.min > wish.mode || wish.mode > wish.max {
        return Err(RequestError::PagingOrder(wish.mode, wish.max, wish.min));
    }
    let levels = |mode: u64| 4u8.saturating_add(u8::try_from(mode).unwrap_or(u8::MAX - 4));
    let available = (if machine_has_5 { 5 } else { 4 }).min(config_max.unwrap_or(5));
    let least = levels(wish.min).max(config_min.unwrap_or(4));
    let preferred = levels(wish.mode).max(least).min(available).min(levels(wish.max));
    if preferred < least {
        return Err(RequestError::Paging {
            wanted: least,
            available: available.min(levels(wish.max)),
        });
    }
    Ok(preferred)
}

/// Reads the paging mode request.
pub fn paging_wish(requests: &Requests, image: &[u8]) -> Option<PagingWish> {
    let slot = requests.get(Feature::PagingMode)?;
    let mode = requests.member(image, Feature::PagingMode, 0)?;
    if slot.revision == 0 {
        return Some(PagingWish { mode, max: mode, min: 0 });
    }
    Some(PagingWish {
        mode,
        max: requests.member(image, Feature::PagingMode, 8)?,
        min: requests.member(image, Feature::PagingMode, 16)?,
    })
}
