//! The rules of a whole manifest.

use abi_types::START_BYTES;
use schema::manifest_capnp::manifest;

use crate::manifest::reader;
use crate::{Error, GrantKind, Manifest, Name, Process, limits};

/// Names seen so far, without two alike.
struct Names<'m, const N: usize> {
    names: [&'m str; N],
    count: usize,
}

/// What became of a name.
#[derive(PartialEq, Eq)]
enum Added {
    New,
    Known,
    Full,
}

impl<'m, const N: usize> Names<'m, N> {
    const fn new() -> Self {
        Self { names: [""; N], count: 0 }
    }

    fn contains(&self, name: &str) -> bool {
        self.names.iter().take(self.count).any(|known| *known == name)
    }

    fn add(&mut self, name: &'m str) -> Added {
        if self.contains(name) {
            return Added::Known;
        }
        let Some(place) = self.names.get_mut(self.count) else { return Added::Full };
        *place = name;
        self.count += 1;
        Added::New
    }
}

/// Checks everything about the manifest in `bytes`.
pub fn check(bytes: &[u8], is_module: impl Fn(&str) -> bool) -> Result<(), Error> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(8) || bytes.len() > limits::MANIFEST_BYTES {
        return Err(Error::Length(bytes.len()));
    }
    if !bytes.as_ptr().addr().is_multiple_of(8) {
        return Err(Error::Unaligned);
    }
    let words = Some(bytes.len() / 8);
    if !reader(bytes, words).is_canonical()? {
        return Err(Error::NotCanonical);
    }
    // Each pass visits each word once, so each has a reader of its own.
    let first = reader(bytes, words);
    let mut endpoints = Names::<{ limits::ENDPOINTS }>::new();
    let mut names = Names::<{ limits::PROCESSES }>::new();
    let mut any_boot = false;
    let processes = first.get_root::<manifest::Reader<'_>>()?.get_processes()?;
    if !(1..=limits::PROCESSES).contains(&(processes.len() as usize)) {
        return Err(Error::ProcessCount(processes.len()));
    }
    for index in 0..processes.len() {
        let process = Process::read(processes.get(index), index)?;
        let name = Name::new(process.name);
        if names.add(process.name) != Added::New {
            return Err(Error::DuplicateProcess(name));
        }
        if !is_module(process.binary) {
            return Err(Error::UnknownBinary(name, Name::new(process.binary)));
        }
        process.write_start_page(&mut [0; START_BYTES])?;
        check_grants(&process, &mut endpoints)?;
        any_boot |= process.is_boot;
    }
    let second = reader(bytes, words);
    let processes = second.get_root::<manifest::Reader<'_>>()?.get_processes()?;
    for index in 0..processes.len() {
        let process = Process::read(processes.get(index), index)?;
        for grant in process.grants() {
            if let GrantKind::Client { endpoint, .. } = grant?.kind
                && !endpoints.contains(endpoint)
            {
                return Err(Error::NoReceiver(Name::new(process.name), Name::new(endpoint)));
            }
        }
    }
    if any_boot { check_boot(bytes) } else { Ok(()) }
}

/// What the kernel starts has its servers: they are started too.
fn check_boot(bytes: &[u8]) -> Result<(), Error> {
    // Both readers visit words again for each endpoint that is asked for; there are as many as limits say.
    let all = Manifest::checked_before(bytes);
    for process in all.processes()? {
        let process = process?;
        for grant in process.grants() {
            let GrantKind::Client { endpoint, .. } = grant?.kind else { continue };
            let found = all.endpoint(endpoint)?;
            let receiver = match found {
                Some(found) => all.process(found.receiver)?,
                None => None,
            };
            if process.is_boot && !receiver.is_some_and(|receiver| receiver.is_boot) {
                return Err(Error::ReceiverWaits(Name::new(process.name), Name::new(endpoint)));
            }
        }
    }
    Ok(())
}

fn check_grants<'m>(
    process: &Process<'m>,
    endpoints: &mut Names<'m, { limits::ENDPOINTS }>,
) -> Result<(), Error> {
    let mut names = Names::<{ limits::GRANTS }>::new();
    for grant in process.grants() {
        let grant = grant?;
        if names.add(grant.name) != Added::New {
            return Err(Error::DuplicateGrant(Name::new(process.name), Name::new(grant.name)));
        }
        if let GrantKind::Endpoint { name, .. } = grant.kind {
            match endpoints.add(name) {
                Added::New => {}
                Added::Known => {
                    return Err(Error::SecondReceiver(Name::new(process.name), Name::new(name)));
                }
                Added::Full => return Err(Error::EndpointCount),
            }
        }
    }
    Ok(())
}
