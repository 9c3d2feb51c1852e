//! `limine.conf`: the subset of stock Limine's configuration language this loader honours.
//!
//! Lines are `key: value`, `/entry`, `# comment` or empty; keys compare without case; what
//! stands before the first entry is global. Unknown keys are ignored, as stock does, so one
//! file serves both loaders. A value this loader would have to act on and cannot is an error
//! that names the line and what would be right there.
//!
//! Parsing never allocates and never panics on any input; the fuzz entry is [`parse`].

use core::fmt;

use arrayvec::ArrayVec;

use crate::refusal::Name;

/// How many modules one entry may list; a boot with more is refused, not truncated.
pub const MAX_MODULES: usize = 64;

/// One `module_path`, with the `module_string` that follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleLine<'t> {
    /// Where the module is.
    pub path: Location<'t>,
    /// The string handed to the kernel with it; empty if the file gives none.
    pub string: &'t str,
}

/// A `boot():/…` location: a path on the boot volume and, if given, the file's BLAKE2b hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'t> {
    /// Path from the root of the boot volume, with the leading slash.
    pub path: &'t str,
    /// 128 hexadecimal digits after `#`.
    pub blake2b: Option<&'t str>,
}

/// What `resolution:` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution {
    /// Pixels per line.
    pub width: u32,
    /// Lines.
    pub height: u32,
    /// Bits per pixel.
    pub bpp: u16,
}

/// The entry to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'t> {
    /// Its name, without the slashes.
    pub name: &'t str,
    /// `path:` of the executable.
    pub path: Location<'t>,
    /// `cmdline:` for the executable.
    pub cmdline: &'t str,
    /// Modules in file order.
    pub modules: ArrayVec<ModuleLine<'t>, MAX_MODULES>,
    /// Whether a relocatable executable is slid by a random distance; off by default.
    pub kaslr: bool,
    /// Whether the direct map's base is random; by default as `kaslr`.
    pub random_hhdm: bool,
    /// Wanted screen mode.
    pub resolution: Option<Resolution>,
    /// `max_paging_mode`: the most levels the user allows.
    pub max_levels: Option<u8>,
    /// `min_paging_mode`: the fewest levels the user allows.
    pub min_levels: Option<u8>,
}

/// What is wrong with the file, and on which line (1-based; 0 for the file as a whole).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line.
    pub line: u32,
    /// The reason.
    pub kind: ConfigErrorKind,
}

/// The ways a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigErrorKind {
    /// The bytes are not UTF-8.
    NotText,
    /// A line is neither `key: value`, `/entry` nor a comment.
    NotALine,
    /// No entry at all.
    NoEntry,
    /// `default_entry` is not the number of an entry; the file has this many.
    DefaultEntry(u32),
    /// The selected entry only groups others.
    Directory(Name),
    /// The selected entry has no `path`.
    NoPath(Name),
    /// A location that is not `boot():/path`.
    Location(Name),
    /// A hash that is not 128 hexadecimal digits.
    Hash,
    /// Another protocol than `limine`.
    Protocol(Name),
    /// A switch that is neither `yes` nor `no`.
    Switch(Name),
    /// A resolution that is not `WxH` or `WxHxB`.
    Resolution(Name),
    /// A paging mode that is neither `4level` nor `5level`.
    PagingMode(Name),
    /// `module_string` before any `module_path`.
    StringWithoutModule,
    /// More than [`MAX_MODULES`] modules.
    TooManyModules,
    /// `kernel_path` and `path`, or `kernel_cmdline` and `cmdline`, given twice.
    Twice(&'static str),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "limine.conf line {}: ", self.line)?;
        } else {
            f.write_str("limine.conf: ")?;
        }
        match &self.kind {
            ConfigErrorKind::NotText => f.write_str("not UTF-8 text"),
            ConfigErrorKind::NotALine => {
                f.write_str("expected `key: value`, `/entry name` or `# comment`")
            }
            ConfigErrorKind::NoEntry => {
                f.write_str("no entry; expected a line like `/capOS` and options below it")
            }
            ConfigErrorKind::DefaultEntry(n) => {
                write!(f, "default_entry must be a number from 1 to {n}, the entries in this file")
            }
            ConfigErrorKind::Directory(name) => write!(
                f,
                "entry `{name}` only groups others; default_entry must name a bootable one"
            ),
            ConfigErrorKind::NoPath(name) => {
                write!(f, "entry `{name}` has no `path: boot():/boot/kernel.elf`")
            }
            ConfigErrorKind::Location(what) => write!(
                f,
                "`{what}` is not served; files are read from the boot volume: `boot():/path/to/file`"
            ),
            ConfigErrorKind::Hash => {
                f.write_str("after `#` expected the 128 hexadecimal digits of a BLAKE2b-512 hash")
            }
            ConfigErrorKind::Protocol(what) => {
                write!(f, "protocol `{what}` is not served; expected `protocol: limine`")
            }
            ConfigErrorKind::Switch(what) => write!(f, "`{what}` is neither `yes` nor `no`"),
            ConfigErrorKind::Resolution(what) => {
                write!(f, "`{what}` is no resolution; expected `1280x800` or `1280x800x32`")
            }
            ConfigErrorKind::PagingMode(what) => {
                write!(f, "`{what}` is no paging mode; expected `4level` or `5level`")
            }
            ConfigErrorKind::StringWithoutModule => {
                f.write_str("module_string belongs below the module_path it describes")
            }
            ConfigErrorKind::TooManyModules => {
                write!(f, "more than {MAX_MODULES} modules in one entry")
            }
            ConfigErrorKind::Twice(key) => write!(f, "`{key}` given twice in one entry"),
        }
    }
}

/// One meaningful line.
enum Line<'t> {
    Entry { depth: usize, name: &'t str },
    Option { key: &'t str, value: &'t str },
}

fn split_line(raw: &str) -> Result<Option<Line<'_>>, ConfigErrorKind> {
    let line = raw.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.starts_with('/') {
        let name = line.trim_start_matches('/');
        let depth = line.len() - name.len();
        // `/+name` opens a group unfolded in stock's menu.
        return Ok(Some(Line::Entry { depth, name: name.trim_start_matches('+').trim() }));
    }
    // A macro definition; capOS files have none, stock's may.
    if line.starts_with("${") {
        return Ok(None);
    }
    let (key, value) = line.split_once(':').ok_or(ConfigErrorKind::NotALine)?;
    Ok(Some(Line::Option { key: key.trim(), value: value.trim() }))
}

fn lines(text: &str) -> impl Iterator<Item = (u32, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().zip(1u32..).map(|(line, number)| (number, line))
}

/// Parses a location of a selected entry.
fn location(value: &str) -> Result<Location<'_>, ConfigErrorKind> {
    let refused = || ConfigErrorKind::Location(Name::new(value));
    let path = value.strip_prefix("boot():").ok_or_else(refused)?;
    let (path, blake2b) = match path.split_once('#') {
        None => (path, None),
        Some((path, hash)) => (path, Some(check_hash(hash).ok_or(ConfigErrorKind::Hash)?)),
    };
    if path.len() < 2 || !path.starts_with('/') {
        return Err(refused());
    }
    Ok(Location { path, blake2b })
}

/// The hash if it is one.
pub(crate) fn check_hash(hash: &str) -> Option<&str> {
    (hash.len() == 128 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(hash)
}

fn switch(value: &str) -> Result<bool, ConfigErrorKind> {
    if value.eq_ignore_ascii_case("yes") {
        Ok(true)
    } else if value.eq_ignore_ascii_case("no") {
        Ok(false)
    } else {
        Err(ConfigErrorKind::Switch(Name::new(value)))
    }
}

fn resolution(value: &str) -> Result<Resolution, ConfigErrorKind> {
    let refused = || ConfigErrorKind::Resolution(Name::new(value));
    let mut parts = value.split('x').map(str::trim);
    let mut number = || parts.next().map(|part| part.parse::<u32>().ok().filter(|n| *n > 0));
    let width = number().flatten().ok_or_else(refused)?;
    let height = number().flatten().ok_or_else(refused)?;
    let bpp = match number() {
        None => 32,
        Some(Some(bpp @ (24 | 32))) => bpp as u16,
        Some(_) => return Err(refused()),
    };
    if parts.next().is_some() {
        return Err(refused());
    }
    Ok(Resolution { width, height, bpp })
}

fn levels(value: &str) -> Result<u8, ConfigErrorKind> {
    match value {
        "4level" => Ok(4),
        "5level" => Ok(5),
        _ => Err(ConfigErrorKind::PagingMode(Name::new(value))),
    }
}

/// Which entry to boot: its number from 1, its header's line and depth, and its name.
struct Selected<'t> {
    number: u32,
    line: u32,
    name: &'t str,
}

fn select(text: &str) -> Result<Selected<'_>, ConfigError> {
    let mut wanted = (0, 1u32);
    let mut count = 0u32;
    let mut bad_default = None;
    for (number, raw) in lines(text) {
        match split_line(raw).map_err(|kind| ConfigError { line: number, kind })? {
            Some(Line::Entry { .. }) => count += 1,
            Some(Line::Option { key, value })
                if count == 0 && key.eq_ignore_ascii_case("default_entry") =>
            {
                match value.parse() {
                    Ok(n) => wanted = (number, n),
                    Err(_) => bad_default = Some(number),
                }
            }
            _ => {}
        }
    }
    if count == 0 {
        return Err(ConfigError { line: 0, kind: ConfigErrorKind::NoEntry });
    }
    let out_of_range = (wanted.1 == 0 || wanted.1 > count).then_some(wanted.0);
    if let Some(line) = bad_default.or(out_of_range) {
        return Err(ConfigError { line, kind: ConfigErrorKind::DefaultEntry(count) });
    }
    let mut seen = 0;
    let mut found: Option<(Selected<'_>, usize)> = None;
    for (number, raw) in lines(text) {
        let Ok(Some(Line::Entry { depth, name })) = split_line(raw) else { continue };
        if let Some((selected, own_depth)) = found {
            if depth > own_depth {
                let kind = ConfigErrorKind::Directory(Name::new(selected.name));
                return Err(ConfigError { line: selected.line, kind });
            }
            return Ok(selected);
        }
        seen += 1;
        if seen == wanted.1 {
            found = Some((Selected { number: seen, line: number, name }, depth));
        }
    }
    match found {
        Some((selected, _)) => Ok(selected),
        None => Err(ConfigError { line: 0, kind: ConfigErrorKind::NoEntry }),
    }
}

/// Reads the file and gives the entry that `default_entry` selects (the first without it).
///
/// `timeout` and the rest of stock's menu are ignored: this loader has no menu.
pub fn parse(bytes: &[u8]) -> Result<Entry<'_>, ConfigError> {
    let text = core::str::from_utf8(bytes)
        .map_err(|_| ConfigError { line: 0, kind: ConfigErrorKind::NotText })?;
    let selected = select(text)?;
    let mut draft = Draft::default();
    let mut entry_number = 0;
    for (number, raw) in lines(text) {
        let at_line = |kind| ConfigError { line: number, kind };
        match split_line(raw).map_err(at_line)? {
            Some(Line::Entry { .. }) => entry_number += 1,
            Some(Line::Option { key, value }) if entry_number == selected.number => {
                draft.option(key, value).map_err(at_line)?;
            }
            _ => {}
        }
    }
    draft.finish(selected.name).map_err(|kind| ConfigError { line: selected.line, kind })
}

/// An entry being read.
#[derive(Default)]
struct Draft<'t> {
    path: Option<Location<'t>>,
    cmdline: Option<&'t str>,
    modules: ArrayVec<ModuleLine<'t>, MAX_MODULES>,
    kaslr: bool,
    random_hhdm: Option<bool>,
    resolution: Option<Resolution>,
    max_levels: Option<u8>,
    min_levels: Option<u8>,
}

impl<'t> Draft<'t> {
    fn option(&mut self, key: &str, value: &'t str) -> Result<(), ConfigErrorKind> {
        let is = |names: &[&str]| names.iter().any(|name| key.eq_ignore_ascii_case(name));
        if is(&["protocol"]) {
            if !value.eq_ignore_ascii_case("limine") {
                return Err(ConfigErrorKind::Protocol(Name::new(value)));
            }
        } else if is(&["path", "kernel_path"]) {
            if self.path.replace(location(value)?).is_some() {
                return Err(ConfigErrorKind::Twice("path"));
            }
        } else if is(&["cmdline", "kernel_cmdline"]) {
            if self.cmdline.replace(value).is_some() {
                return Err(ConfigErrorKind::Twice("cmdline"));
            }
        } else if is(&["module_path"]) {
            let line = ModuleLine { path: location(value)?, string: "" };
            self.modules.try_push(line).map_err(|_| ConfigErrorKind::TooManyModules)?;
        } else if is(&["module_string", "module_cmdline"]) {
            self.modules.last_mut().ok_or(ConfigErrorKind::StringWithoutModule)?.string = value;
        } else if is(&["kaslr"]) {
            self.kaslr = switch(value)?;
        } else if is(&["randomise_hhdm_base", "randomize_hhdm_base"]) {
            self.random_hhdm = Some(switch(value)?);
        } else if is(&["resolution"]) {
            self.resolution = Some(resolution(value)?);
        } else if is(&["max_paging_mode"]) {
            self.max_levels = Some(levels(value)?);
        } else if is(&["min_paging_mode"]) {
            self.min_levels = Some(levels(value)?);
        }
        Ok(())
    }

    fn finish(self, name: &'t str) -> Result<Entry<'t>, ConfigErrorKind> {
        let path = self.path.ok_or_else(|| ConfigErrorKind::NoPath(Name::new(name)))?;
        Ok(Entry {
            name,
            path,
            cmdline: self.cmdline.unwrap_or(""),
            modules: self.modules,
            kaslr: self.kaslr,
            random_hhdm: self.random_hhdm.unwrap_or(self.kaslr),
            resolution: self.resolution,
            max_levels: self.max_levels,
            min_levels: self.min_levels,
        })
    }
}
