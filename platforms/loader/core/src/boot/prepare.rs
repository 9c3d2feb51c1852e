//! Everything that needs the boot volume: executable, requests, modules.

use arrayvec::{ArrayString, ArrayVec};

use crate::config::{Entry, MAX_MODULES};
use crate::files::{FileData, Platform, load_checked};
use crate::image::Image;
use crate::memmap::Kind;
use crate::memory::{PAGE, page_up};
use crate::modules::{Internal, LoadedImage, MAX_INTERNAL, MAX_PATH, Path, resolve};
use crate::protocol::{Feature, MIN_STACK};
use crate::refusal::{Name, Refusal};
use crate::relocate::relocate;
use crate::requests::{RequestError, Requests, choose_levels, paging_wish};
use crate::respond::PlacedFile;

/// The most module files.
pub const MAX_FILES: usize = MAX_MODULES + MAX_INTERNAL;

/// A stack larger than this is a mistake in the request.
const MAX_STACK: u64 = 1 << 30;

/// A loaded kernel and what it asked for.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The executable's layout.
    pub image: Image,
    /// Physical address of its block.
    pub block: u64,
    /// How far it was slid.
    pub slide: u64,
    /// Its requests.
    pub requests: Requests,
    /// Its file, with path and command line.
    pub file: PlacedFile,
    /// Internal modules first, then the configuration's.
    pub modules: ArrayVec<PlacedFile, MAX_FILES>,
    /// Page table levels.
    pub levels: u8,
    /// Bytes of every stack.
    pub stack_size: u64,
    /// Where the kernel starts.
    pub entry: u64,
    /// The MP request's flags, if there is one.
    pub mp_flags: Option<u64>,
    /// A random number for the direct map's base.
    pub random_hhdm: Option<u64>,
}

impl Prepared {
    /// Virtual address of the block.
    pub fn base(&self) -> u64 {
        self.image.start.wrapping_add(self.slide)
    }

    /// Whether the kernel asks for `feature`.
    pub fn wants(&self, feature: Feature) -> bool {
        self.requests.get(feature).is_some()
    }
}

/// Strings of the boot, in pages of the platform.
#[derive(Default)]
struct Strings {
    next: u64,
    end: u64,
}

impl Strings {
    const STEP: u64 = 2;

    /// Places the parts as one NUL-terminated string.
    fn place(&mut self, platform: &mut impl Platform, parts: &[&str]) -> Result<u64, Refusal> {
        let first = parts.iter().find(|part| !part.is_empty()).copied().unwrap_or("");
        if parts.iter().any(|part| part.contains('\0')) {
            return Err(Refusal::String(Name::new(first)));
        }
        let length = parts.iter().map(|part| part.len() as u64).sum::<u64>() + 1;
        if self.end - self.next < length {
            let pages = (page_up(length) / PAGE).max(Self::STEP);
            self.next = platform.allocate(pages, PAGE, Kind::BootloaderReclaimable)?;
            self.end = self.next + pages * PAGE;
        }
        let base = self.next;
        let bytes = platform.bytes(base, length).ok_or(Refusal::Unreachable { base, length })?;
        let text = parts.iter().flat_map(|part| part.bytes()).chain([0]);
        for (to, from) in bytes.iter_mut().zip(text) {
            *to = from;
        }
        self.next += length;
        Ok(base)
    }
}

/// Loads everything the entry names and the kernel asks for.
///
/// `append` is added to the entry's command line. `has_5_levels` and `has_no_execute` say
/// what the processor can do.
pub fn prepare(
    platform: &mut impl Platform,
    entry: &Entry<'_>,
    append: &str,
    has_5_levels: bool,
    has_no_execute: bool,
) -> Result<Prepared, Refusal> {
    if !has_no_execute {
        return Err(RequestError::NoExecuteMissing.into());
    }
    let file = load_checked(platform, entry.path.path, entry.path.blake2b)?;
    let view = platform.view(file.base, file.size).ok_or(unreachable(file.base, file.size))?;
    let image = Image::parse(view)?;
    let random = entry.kaslr.then(|| platform.random());
    let slide = image.slide(random)?;
    let size = image.size();
    let block = platform.allocate(size / PAGE, image.alignment, Kind::ExecutableAndModules)?;
    image.load(platform, file.base, block)?;
    let bytes = platform.bytes(block, size).ok_or(unreachable(block, size))?;
    relocate(bytes, &image, slide)?;
    let base = image.start.wrapping_add(slide);
    let bytes = platform.view(block, size).ok_or(unreachable(block, size))?;
    let asked = Asked::read(bytes, &image, slide)?;
    let levels = choose_levels(
        paging_wish(&asked.requests, bytes),
        has_5_levels,
        entry.max_levels,
        entry.min_levels,
    )?;

    let mut strings = Strings::default();
    let space = if entry.cmdline.is_empty() || append.is_empty() { "" } else { " " };
    let placed = PlacedFile {
        data: file,
        path: strings.place(platform, &[entry.path.path])?,
        string: strings.place(platform, &[entry.cmdline, space, append])?,
    };
    let mut modules = ArrayVec::new();
    for internal in &asked.internal {
        let found = internal_module(platform, &mut strings, internal, entry, (block, base, size))?;
        // The two lists' limits add up to this one's.
        modules.extend(found.into_iter().take(modules.remaining_capacity()));
    }
    if asked.requests.get(Feature::Modules).is_some() {
        for line in &entry.modules {
            let data = load_checked(platform, line.path.path, line.path.blake2b)?;
            let path = strings.place(platform, &[line.path.path])?;
            let string = strings.place(platform, &[line.string])?;
            modules
                .try_push(PlacedFile { data, path, string })
                .map_err(|_| Refusal::Request(RequestError::TooMany))?;
        }
    }
    Ok(Prepared {
        block,
        slide,
        file: placed,
        modules,
        levels,
        stack_size: asked.stack_size,
        entry: asked.entry,
        mp_flags: asked.mp_flags,
        random_hhdm: entry.random_hhdm.then(|| platform.random()),
        requests: asked.requests,
        image,
    })
}

fn unreachable(base: u64, length: u64) -> Refusal {
    Refusal::Unreachable { base, length }
}

/// What the requests say, read while the image's bytes are borrowed.
struct Asked {
    requests: Requests,
    stack_size: u64,
    entry: u64,
    mp_flags: Option<u64>,
    internal: ArrayVec<Internal, MAX_INTERNAL>,
}

impl Asked {
    fn read(bytes: &[u8], image: &Image, slide: u64) -> Result<Self, RequestError> {
        let parts = image.segments.iter().map(|segment| {
            let start = (segment.vaddr - image.start) as usize;
            (start, start + segment.file_size as usize)
        });
        let requests = Requests::discover(bytes, parts)?;
        let member = |feature, offset| requests.member(bytes, feature, offset);
        let stack_size = page_up(member(Feature::StackSize, 0).unwrap_or(0).max(MIN_STACK));
        if stack_size > MAX_STACK {
            return Err(RequestError::StackSize(stack_size));
        }
        let entry = match member(Feature::EntryPoint, 0) {
            None => image.entry.wrapping_add(slide),
            Some(address) if image.is_code(address.wrapping_sub(slide)) => address,
            Some(address) => return Err(RequestError::EntryPoint(address)),
        };
        let mut internal = ArrayVec::new();
        if let Some(slot) = requests.get(Feature::Modules)
            && slot.revision >= 1
            && let Some(count) = member(Feature::Modules, 0)
            && let Some(list) = member(Feature::Modules, 8)
        {
            let image = LoadedImage { bytes, base: image.start.wrapping_add(slide) };
            internal = image.internal_modules(count, list)?;
        }
        let mp_flags = member(Feature::Mp, 0);
        Ok(Self { stack_size, entry, mp_flags, internal, requests })
    }
}

/// Loads one internal module; `None` if it is not there and not required.
fn internal_module(
    platform: &mut impl Platform,
    strings: &mut Strings,
    internal: &Internal,
    entry: &Entry<'_>,
    (block, base, size): (u64, u64, u64),
) -> Result<Option<PlacedFile>, Refusal> {
    let bytes = platform.view(block, size).ok_or(unreachable(block, size))?;
    let image = LoadedImage { bytes, base };
    let (path, hash) = resolve(entry.path.path, image.text(internal.path)?)?;
    let path: Path = path;
    let hash: Option<ArrayString<128>> =
        hash.map(|hash| hash.chars().take(128).fold(ArrayString::new(), pushed));
    let string = image.text(internal.string)?;
    let copy: ArrayString<MAX_PATH> =
        ArrayString::from(string).map_err(|_| Refusal::String(Name::new(string)))?;
    let data: FileData = match load_checked(platform, &path, hash.as_deref()) {
        Ok(data) => data,
        Err(Refusal::NotFound(_)) if !internal.required => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    Ok(Some(PlacedFile {
        data,
        path: strings.place(platform, &[&path])?,
        string: strings.place(platform, &[&copy])?,
    }))
}

fn pushed(mut text: ArrayString<128>, c: char) -> ArrayString<128> {
    let _ = text.try_push(c);
    text
}
