//! Modules: those the configuration lists and those the kernel asks for itself.

use arrayvec::{ArrayString, ArrayVec};

use crate::config::check_hash;
use crate::memory::get_u64;
use crate::refusal::{Name, Refusal};
use crate::requests::RequestError;

/// Internal modules one kernel may ask for.
pub const MAX_INTERNAL: usize = 64;

/// The longest path.
pub const MAX_PATH: usize = 255;

/// A path on the boot volume.
pub type Path = ArrayString<MAX_PATH>;

/// A module the kernel carries a request for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Internal {
    /// Address of the path string, linked address plus slide.
    pub path: u64,
    /// Address of the module's string.
    pub string: u64,
    /// Whether boot fails without it.
    pub required: bool,
}

/// The loaded image, to read what its pointers point to.
#[derive(Clone, Copy)]
pub struct LoadedImage<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Virtual address of the first.
    pub base: u64,
}

impl<'a> LoadedImage<'a> {
    fn at(&self, address: u64) -> Option<usize> {
        let offset = usize::try_from(address.checked_sub(self.base)?).ok()?;
        (offset < self.bytes.len()).then_some(offset)
    }

    fn word(&self, address: u64) -> Result<u64, RequestError> {
        self.at(address)
            .and_then(|at| get_u64(self.bytes, at))
            .ok_or(RequestError::InternalModule(address))
    }

    /// The NUL-terminated text at an address; null gives the empty text.
    pub fn text(&self, address: u64) -> Result<&'a str, RequestError> {
        let error = RequestError::InternalModule(address);
        if address == 0 {
            return Ok("");
        }
        let rest = self.at(address).and_then(|at| self.bytes.get(at..)).ok_or(error)?;
        let end = rest.iter().position(|&b| b == 0).ok_or(error)?;
        core::str::from_utf8(rest.get(..end).unwrap_or(&[])).map_err(|_| error)
    }

    /// The internal modules listed at `list`.
    pub fn internal_modules(
        &self,
        count: u64,
        list: u64,
    ) -> Result<ArrayVec<Internal, MAX_INTERNAL>, RequestError> {
        const REQUIRED: u64 = 1;
        const COMPRESSED: u64 = 2;
        let mut modules = ArrayVec::new();
        for index in 0..count {
            let slot = list.wrapping_add(index.wrapping_mul(8));
            let module = self.word(slot)?;
            let flags = self.word(module.wrapping_add(16))?;
            if flags & COMPRESSED != 0 {
                return Err(RequestError::Compressed);
            }
            let internal = Internal {
                path: self.word(module)?,
                string: self.word(module.wrapping_add(8))?,
                required: flags & REQUIRED != 0,
            };
            modules.try_push(internal).map_err(|_| RequestError::TooMany)?;
        }
        Ok(modules)
    }
}

/// The path `wanted` names from the executable's folder, cleaned of `.` and `..`, and the
/// hash after `#`.
pub fn resolve<'a>(executable: &str, wanted: &'a str) -> Result<(Path, Option<&'a str>), Refusal> {
    let refused = || Refusal::NotFound(Name::new(wanted));
    let (wanted_path, hash) = match wanted.split_once('#') {
        None => (wanted, None),
        Some((path, hash)) => {
            (path, Some(check_hash(hash).ok_or(Refusal::HashDiffers(Name::new(path)))?))
        }
    };
    let folder = if wanted_path.starts_with('/') {
        ""
    } else {
        executable.rsplit_once('/').map_or("", |(folder, _)| folder)
    };
    let mut path = Path::new();
    for part in folder.split('/').chain(wanted_path.split('/')) {
        match part {
            "" | "." => {}
            ".." => path.truncate(path.rfind('/').ok_or_else(refused)?),
            name => {
                path.try_push('/').map_err(|_| refused())?;
                path.try_push_str(name).map_err(|_| refused())?;
            }
        }
    }
    if path.is_empty() { Err(refused()) } else { Ok((path, hash)) }
}
