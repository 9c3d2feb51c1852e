//! Random manifests, good and bad, against rules written a second time in the plainest way.
use abi_types::{START_BYTES, StartReader};
use core_manifest::{GrantKind, Manifest};
use schema::manifest_capnp::manifest;
use std::collections::HashSet;
use test_property::prelude::*;
use zerocopy::IntoBytes;

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Plain(u8),
    Endpoint(String, u64),
    Client(String, u64),
}

#[derive(Clone, Debug)]
struct Process {
    name: String,
    binary: String,
    weight: u16,
    essential: bool,
    boot: bool,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    /// In the order of the schema.
    profile: [u32; 11],
    grants: Vec<(String, Kind)>,
}

const DEFAULTS: [u32; 11] = [64, 16, 512, 4096, 16, 64, 4096, 32, 32, 524_288, 0];

/// The canonical encoding, 8-aligned.
fn encode(processes: &[Process]) -> Vec<u64> {
    let mut message = capnp::message::Builder::new_default();
    let mut list = message.init_root::<manifest::Builder>().init_processes(processes.len() as u32);
    for (index, process) in processes.iter().enumerate() {
        let mut to = list.reborrow().get(index as u32);
        to.set_name(process.name.as_str());
        to.set_binary(process.binary.as_str());
        to.set_weight(process.weight);
        to.set_essential(process.essential);
        to.set_boot(process.boot);
        let mut arguments = to.reborrow().init_arguments(process.arguments.len() as u32);
        for (position, text) in process.arguments.iter().enumerate() {
            arguments.reborrow().get(position as u32).set_text(text.as_str());
        }
        let mut environment = to.reborrow().init_environment(process.environment.len() as u32);
        for (position, (name, value)) in process.environment.iter().enumerate() {
            let mut variable = environment.reborrow().get(position as u32);
            variable.set_name(name.as_str());
            variable.set_value(value.as_str());
        }
        let mut profile = to.reborrow().init_profile();
        let [slots, threads, stack, frames, sleeps, ring, scratch, flight, queue, bytes, buffers] =
            process.profile;
        profile.set_cap_slots(slots);
        profile.set_threads(threads);
        profile.set_kernel_stack_pages(stack);
        profile.set_frames(frames);
        profile.set_sleep_waiters(sleeps);
        profile.set_ring_entries(ring);
        profile.set_ring_scratch_limit_bytes(scratch);
        profile.set_in_flight_call_limit(flight);
        profile.set_endpoint_queue_limit(queue);
        profile.set_kernel_bytes(bytes);
        profile.set_registered_buffers(buffers);
        let mut grants = to.init_grants(process.grants.len() as u32);
        for (position, (name, kind)) in process.grants.iter().enumerate() {
            let mut grant = grants.reborrow().get(position as u32);
            grant.set_name(name.as_str());
            match kind {
                Kind::Plain(0) => grant.set_console(()),
                Kind::Plain(1) => grant.set_timer(()),
                Kind::Plain(2) => grant.set_system_info(()),
                Kind::Plain(3) => grant.set_thread_spawner(()),
                Kind::Plain(4) => grant.set_thread_control(()),
                Kind::Plain(5) => grant.set_park_space(()),
                Kind::Plain(_) => grant.set_records(()),
                Kind::Endpoint(endpoint, id) => {
                    let mut group = grant.init_endpoint();
                    group.set_name(endpoint.as_str());
                    group.set_interface_id(*id);
                }
                Kind::Client(endpoint, badge) => {
                    let mut group = grant.init_client();
                    group.set_endpoint(endpoint.as_str());
                    group.set_badge(*badge);
                }
            }
        }
    }
    let root = message.get_root_as_reader::<manifest::Reader>().unwrap();
    // One segment, however large.
    let allocator = capnp::message::HeapAllocator::new().first_segment_words(1 << 16);
    let mut canonical = capnp::message::Builder::new(allocator);
    canonical.set_root_canonical(root).unwrap();
    let segments = canonical.get_segments_for_output();
    let mut words = vec![0u64; segments[0].len() / 8];
    words.as_mut_bytes().copy_from_slice(segments[0]);
    words
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 44 && name.chars().all(|c| !c.is_control())
}

fn is_valid(processes: &[Process]) -> bool {
    let ranges = [
        1..=65536u64,
        1..=4096,
        1..=1 << 20,
        16..=1 << 24,
        0..=4096,
        2..=1024,
        128..=65536,
        1..=u64::from(u32::MAX),
        1..=u64::from(u32::MAX),
        4096..=1 << 30,
        0..=32,
    ];
    let mut names = HashSet::new();
    let mut receivers = HashSet::new();
    let mut ok = (1..=64).contains(&processes.len());
    for process in processes {
        ok &= is_name(&process.name) && names.insert(&process.name);
        ok &= is_name(&process.binary) && process.binary.ends_with(".elf");
        ok &= (1..=1024).contains(&process.weight);
        for (value, range) in process.profile.iter().zip(&ranges) {
            ok &= range.contains(&u64::from(*value));
        }
        ok &= process.profile[5].is_power_of_two();
        let arguments = process.arguments.iter().map(|text| 8 + text.len());
        let variables =
            process.environment.iter().map(|(name, value)| 9 + name.len() + value.len());
        ok &= 16 + arguments.sum::<usize>() + variables.sum::<usize>() <= 4096;
        ok &= process.environment.iter().all(|(name, _)| is_name(name) && !name.contains('='));
        ok &= process.grants.len() <= 63 && process.grants.len() <= process.profile[0] as usize;
        let mut own = HashSet::new();
        for (name, kind) in &process.grants {
            ok &= is_name(name) && own.insert(name);
            if let Kind::Endpoint(endpoint, id) = kind {
                ok &= *id as u32 != (*id >> 32) as u32;
                ok &= is_name(endpoint) && receivers.insert(endpoint);
            }
        }
    }
    ok &= receivers.len() <= 256;
    let own = |process: &Process| {
        process.grants.iter().map(|(_, kind)| (process.boot, kind.clone())).collect::<Vec<_>>()
    };
    for (is_boot, kind) in &processes.iter().flat_map(own).collect::<Vec<_>>() {
        if let Kind::Client(endpoint, _) = kind {
            ok &= receivers.contains(endpoint);
            let receives = |process: &&Process| {
                let is_it =
                    |kind: &Kind| matches!(kind, Kind::Endpoint(name, _) if name == endpoint);
                process.grants.iter().any(|(_, kind)| is_it(kind))
            };
            let receiver = processes.iter().find(receives);
            ok &= !is_boot || receiver.is_some_and(|receiver| receiver.boot);
        }
    }
    ok
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        40 => "[a-h][a-z]{0,3}",
        1 => Just(String::new()),
        1 => Just("x".repeat(44)),
        1 => Just("x".repeat(45)),
        1 => Just("a\u{7}b".to_owned()),
        1 => Just("naïve name".to_owned()),
    ]
}

/// The id of an interface; few have no tag.
fn interface() -> impl Strategy<Value = u64> {
    prop_oneof![
        20 => any::<u64>(),
        1 => Just(0),
        1 => any::<u32>().prop_map(|half| u64::from(half) << 32 | u64::from(half)),
    ]
}

fn grant() -> impl Strategy<Value = (String, Kind)> {
    let kind = prop_oneof![
        3 => (0u8..7).prop_map(Kind::Plain),
        1 => (name(), interface()).prop_map(|(name, id)| Kind::Endpoint(name, id)),
        1 => ("[a-h]", any::<u64>()).prop_map(|(name, badge)| Kind::Client(name, badge)),
        // What a client most often names.
        1 => interface().prop_map(|id| Kind::Endpoint("a".to_owned(), id)),
    ];
    (name(), kind)
}

fn process() -> impl Strategy<Value = Process> {
    let binary = prop_oneof![20 => Just("a.elf".to_owned()), 1 => name()];
    let weight = prop_oneof![9 => 1u16..=1024, 1 => any::<u16>()];
    let profile = prop_oneof![
        9 => Just(DEFAULTS),
        1 => any::<(prop::sample::Index, u32)>().prop_map(|(index, value)| {
            let mut profile = DEFAULTS;
            profile[index.index(11)] = value;
            profile
        }),
        1 => (0usize..11, 0u32..5).prop_map(|(index, value)| {
            let mut profile = DEFAULTS;
            profile[index] = value;
            profile
        }),
    ];
    let grants = prop::collection::vec(grant(), 0..6);
    let argument = prop_oneof![9 => ".{0,9}", 1 => (0_usize..4096).prop_map(|n| "y".repeat(n))];
    let variable = (prop_oneof![20 => name(), 1 => Just("a=b".to_owned())], ".{0,9}");
    let start = (
        prop::collection::vec(argument, 0..4),
        prop::collection::vec(variable, 0..3),
        any::<bool>(),
    );
    (name(), binary, weight, any::<bool>(), profile, grants, start).prop_map(
        |(name, binary, weight, essential, profile, grants, start)| Process {
            name,
            binary,
            weight,
            essential,
            boot: start.2,
            arguments: start.0,
            environment: start.1,
            profile,
            grants,
        },
    )
}

/// Reads everything back and compares.
fn compare(manifest: &Manifest<'_>, processes: &[Process]) {
    assert_eq!(manifest.process_count() as usize, processes.len());
    for (number, process) in (0..).zip(processes) {
        assert_eq!(manifest.process(number).unwrap().unwrap().name, process.name);
    }
    assert!(manifest.process(processes.len() as u32).unwrap().is_none());
    for (read, process) in manifest.processes().unwrap().zip(processes) {
        let read = read.unwrap();
        assert_eq!(
            (read.name, read.binary, read.weight, read.is_essential),
            (&*process.name, &*process.binary, process.weight, process.essential)
        );
        assert_eq!(read.is_boot, process.boot);
        let mut page = [0; START_BYTES];
        read.write_start_page(&mut page).unwrap();
        let start = StartReader::new(&page);
        assert!(start.arguments().eq(process.arguments.iter().map(String::as_str)));
        let variables = process.environment.iter().map(|(name, value)| (&**name, &**value));
        assert!(start.variables().eq(variables));
        assert_eq!(
            read.has_start_page(),
            start.arguments().count() + start.variables().count() > 0
        );
        let profile = read.profile;
        let [slots, threads, stack, frames, sleeps, ring, scratch, flight, queue, bytes, buffers] =
            process.profile;
        assert_eq!((profile.cap_slots, profile.threads), (slots, threads));
        assert_eq!((profile.kernel_stack_pages, profile.frames), (stack, frames));
        assert_eq!((profile.sleep_waiters, profile.ring_entries), (sleeps, ring));
        assert_eq!((profile.ring_scratch_limit_bytes, profile.kernel_bytes), (scratch, bytes));
        assert_eq!(profile.registered_buffers, buffers);
        assert_eq!(
            (profile.in_flight_call_limit, profile.endpoint_queue_limit),
            (flight.min(32), queue.min(32))
        );
        assert_eq!(read.grant_count() as usize, process.grants.len());
        for (read, (name, kind)) in read.grants().zip(&process.grants) {
            let read = read.unwrap();
            assert_eq!(read.name, name);
            let expected = match kind {
                Kind::Plain(0) => GrantKind::Console,
                Kind::Plain(1) => GrantKind::Timer,
                Kind::Plain(2) => GrantKind::SystemInfo,
                Kind::Plain(3) => GrantKind::ThreadSpawner,
                Kind::Plain(4) => GrantKind::ThreadControl,
                Kind::Plain(5) => GrantKind::ParkSpace,
                Kind::Plain(_) => GrantKind::Records,
                Kind::Endpoint(name, id) => GrantKind::Endpoint { name, interface_id: *id },
                Kind::Client(endpoint, badge) => GrantKind::Client { endpoint, badge: *badge },
            };
            assert_eq!(read.kind, expected);
            if let Kind::Client(endpoint, _) = kind {
                let found = manifest.endpoint(endpoint).unwrap().unwrap();
                let receiver = &processes[found.receiver as usize];
                let is_it =
                    |kind: &Kind| *kind == Kind::Endpoint(endpoint.clone(), found.interface_id);
                assert!(receiver.grants.iter().any(|(_, kind)| is_it(kind)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_rules_are_the_rules(processes in prop::collection::vec(process(), 0..4)) {
        let words = encode(&processes);
        match Manifest::check(words.as_bytes(), |name| name.ends_with(".elf")) {
            Ok(manifest) => {
                prop_assert!(is_valid(&processes));
                compare(&manifest, &processes);
            }
            Err(error) => prop_assert!(!is_valid(&processes), "{}", error),
        }
    }
}

fn plain(name: &str) -> Process {
    Process {
        name: name.to_owned(),
        binary: "a.elf".to_owned(),
        weight: 64,
        essential: false,
        boot: false,
        arguments: Vec::new(),
        environment: Vec::new(),
        profile: DEFAULTS,
        grants: Vec::new(),
    }
}

#[test]
fn counts_at_their_limits() {
    let check = |processes: &[Process]| {
        let words = encode(processes);
        let result = Manifest::check(words.as_bytes(), |_| true);
        assert_eq!(result.is_ok(), is_valid(processes));
        result.map(|manifest| compare(&manifest, processes)).map_err(|error| error.to_string())
    };
    let mut many: Vec<Process> = (0..64).map(|index| plain(&format!("p{index}"))).collect();
    // 4 × 63 + 4 endpoints, and one more.
    for (index, process) in many.iter_mut().take(5).enumerate() {
        let count = if index < 4 { 63 } else { 4 };
        process.grants = (0..count)
            .map(|grant| (format!("g{grant}"), Kind::Endpoint(format!("e{index}.{grant}"), 1)))
            .collect();
    }
    assert_eq!(check(&many), Ok(()));
    many[5].grants.push(("one more".to_owned(), Kind::Endpoint("one more".to_owned(), 1)));
    assert_eq!(check(&many), Err("the manifest has more than 256 endpoints".to_owned()));
    many[5].grants.clear();
    many.push(plain("one more"));
    assert_eq!(check(&many), Err("the manifest has 65 processes; it has 1 to 64".to_owned()));
    let mut full = plain("full");
    full.grants = (0..64).map(|grant| (format!("g{grant}"), Kind::Plain(0))).collect();
    full.profile[0] = 100;
    assert_eq!(check(&[full]), Err("process \"full\" has 64 grants; it has at most 63".to_owned()));
}
