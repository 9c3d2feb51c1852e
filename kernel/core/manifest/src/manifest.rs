//! A manifest that was checked.

use capnp::message::{Reader, ReaderOptions, ReaderSegments};
use schema::manifest_capnp::manifest;

use crate::check::check;
use crate::{Error, GrantKind, Process, limits};

/// The only segment.
pub(crate) struct Blob<'b>(&'b [u8]);

impl ReaderSegments for Blob<'_> {
    fn get_segment(&self, index: u32) -> Option<&[u8]> {
        (index == 0).then_some(self.0)
    }

    fn len(&self) -> usize {
        1
    }
}

/// A reader of `bytes` that visits at most `words` of it, or as many as it likes.
pub(crate) fn reader(bytes: &[u8], words: Option<usize>) -> Reader<Blob<'_>> {
    let options = ReaderOptions { traversal_limit_in_words: words, nesting_limit: limits::NESTING };
    Reader::new(Blob(bytes), options)
}

/// A manifest that was checked.
pub struct Manifest<'b> {
    reader: Reader<Blob<'b>>,
}

/// Where an endpoint comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its number among the endpoints, in the order of their grants.
    pub index: u32,
    /// The number of the process that receives.
    pub receiver: u32,
    /// What its clients call; it has a tag.
    pub interface_id: u64,
}

impl<'b> Manifest<'b> {
    /// Checks the manifest in `bytes`; `is_module` says whether a boot module has a name.
    pub fn check(bytes: &'b [u8], is_module: impl Fn(&str) -> bool) -> Result<Self, Error> {
        check(bytes, is_module)?;
        Ok(Self::checked_before(bytes))
    }

    /// The manifest in `bytes`, which were checked and have not changed since.
    pub fn checked_before(bytes: &'b [u8]) -> Self {
        // Every pointer of it was followed once within its own words, so that following them
        // again is bounded too.
        Self { reader: reader(bytes, None) }
    }

    /// Whether the kernel starts only those that are marked.
    pub fn has_boot_marks(&self) -> Result<bool, Error> {
        for process in self.processes()? {
            if process?.is_boot {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Process number `number`, if there are so many.
    pub fn process(&self, number: u32) -> Result<Option<Process<'_>>, Error> {
        let processes = self.reader.get_root::<manifest::Reader<'_>>()?.get_processes()?;
        if number >= processes.len() {
            return Ok(None);
        }
        Process::read(processes.get(number), number).map(Some)
    }

    /// How many processes there are.
    pub fn process_count(&self) -> u32 {
        let root = self.reader.get_root::<manifest::Reader<'_>>();
        root.and_then(|root| root.get_processes()).map_or(0, |processes| processes.len())
    }

    /// The processes, in the order they start.
    pub fn processes(&self) -> Result<impl Iterator<Item = Result<Process<'_>, Error>>, Error> {
        let processes = self.reader.get_root::<manifest::Reader<'_>>()?.get_processes()?;
        Ok((0..processes.len()).map(move |index| Process::read(processes.get(index), index)))
    }

    /// The endpoint that a grant named.
    pub fn endpoint(&self, name: &str) -> Result<Option<Endpoint>, Error> {
        let mut index = 0;
        for (receiver, process) in (0..).zip(self.processes()?) {
            for grant in process?.grants() {
                if let GrantKind::Endpoint { name: found, interface_id } = grant?.kind {
                    if found == name {
                        return Ok(Some(Endpoint { index, receiver, interface_id }));
                    }
                    index += 1;
                }
            }
        }
        Ok(None)
    }
}
