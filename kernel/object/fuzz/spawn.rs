//! Fuzzes what a program asks a ProcessSpawner for: names, weight, limits, grants, and the start page that its arguments
//! become. What reaches the kernel keeps every rule; what does not is refused with a sentence.
#![no_main]

use abi_types::{CapSlot, StartReader};
use core_manifest::Name;
use kernel_object::process_spawner::{Host, ProcessSpawner};
use kernel_process::child::{ChildError, GrantFrom, NewChild};
use kernel_process::entry::EntryError;
use libfuzzer_sys::fuzz_target;
use schema_wire::{Exception, Served, TransferIndex};
use zerocopy::IntoBytes;

/// A kernel that starts everything that it may be asked to.
struct Anything;

fn check(new: &NewChild<'_>) {
    assert!(Name::is_good(new.name.as_str()));
    assert!((1..=1024).contains(&new.weight.get()));
    assert!(new.grants.len() <= 63 && new.grants.len() as u32 <= new.profile.cap_slots);
    assert!(new.profile.ring_entries.is_power_of_two() && new.profile.frames >= 16);
    for (number, grant) in new.grants.iter().enumerate() {
        assert!(Name::is_good(grant.name.as_str()));
        let others = new.grants.iter().take(number);
        assert!(others.into_iter().all(|other| other.name.as_str() != grant.name.as_str()));
        if let GrantFrom::Own(_) = grant.source {
            assert_eq!(grant.interface_id, 0);
        }
    }
    let (page, length) = new.start_page;
    assert!(length <= page.len() && page[length..].iter().all(|byte| *byte == 0));
    if length != 0 {
        let reader = StartReader::new(page);
        for (name, _) in reader.variables() {
            assert!(Name::is_good(name));
        }
        assert!(reader.arguments().count() + reader.variables().count() > 0);
    }
}

impl Host for Anything {
    fn pause(&self) {}

    fn spawn(&mut self, binary: &str, new: &NewChild<'_>) -> Option<Result<CapSlot, ChildError>> {
        check(new);
        (!binary.is_empty()).then_some(Ok(CapSlot::new(3, 1)))
    }

    fn spawn_image(
        &mut self,
        image: TransferIndex,
        _: u64,
        new: &NewChild<'_>,
    ) -> Option<Result<CapSlot, ChildError>> {
        check(new);
        (image.0 == 0).then_some(Err(ChildError::Ending))
    }

    fn spawn_entry(&mut self, _: &str) -> Result<CapSlot, EntryError> {
        Err(EntryError::Unknown)
    }
}

fuzz_target!(|input: &[u8]| {
    let [method, message @ ..] = input else { return };
    // As the kernel has it: copied, aligned, and no longer than a call's parameters.
    let mut words = [0_u64; 1024];
    let length = message.len().min(size_of_val(&words));
    words.as_mut_bytes()[..length].copy_from_slice(&message[..length]);
    let mut results = [0_u64; 16];
    let room = results.as_mut_bytes();
    let mut host = Anything;
    let mut server = ProcessSpawner(&mut host);
    let method = u16::from(method % 4);
    let answer =
        schema::process_spawner::dispatch(&mut server, method, &words.as_bytes()[..length], room);
    if let Ok(Served::Exception(bytes)) = answer {
        let exception = Exception::decode(&results.as_bytes()[..bytes]).expect("what was encoded");
        assert!(!exception.message().is_empty());
    }
});
