//! Messages nobody honest sends, to every method of every interface: none panics, none makes a
//! server see more than the message holds.
use schema::{INTERFACES, console, system_info, thread_spawner};
use schema_testing::{Everything, Loopback, Words, serve};
use schema_wire::{CapSlot, Encode, Served, Status};
use test_property::prelude::*;

/// Sends `bytes` to every method there is, and one that is not.
fn send(bytes: &[u8]) {
    let words = Words::of(bytes);
    send_words(&words.bytes()[..bytes.len()]);
}

fn send_words(bytes: &[u8]) {
    for interface in INTERFACES {
        for method in 0..=interface.methods.len() as u16 {
            let mut server = Everything { input: vec![7; 500], ..Everything::default() };
            let mut results = Words::dirty(512);
            let served =
                serve(&mut server, interface.name, method, bytes, results.bytes_mut()).unwrap();
            match served {
                Ok(Served::Results(length) | Served::Exception(length)) => {
                    assert!(length <= 512);
                    if !bytes.len().is_multiple_of(8) {
                        panic!("{} took {} bytes", interface.name, bytes.len());
                    }
                }
                Ok(Served::Later) => {}
                Err(status) => {
                    assert!(matches!(status, Status::InvalidArgument | Status::Unimplemented));
                    assert_eq!(server.asked, [""; 0], "a refused call did something");
                }
            }
            // What a server is given is at most what was sent, however it is pointed at.
            if interface.name == "Console" && method == 0 && !server.asked.is_empty() {
                let seen = server.asked[0].matches(',').count();
                assert!(seen <= bytes.len(), "{seen} elements out of {} bytes", bytes.len());
            }
        }
    }
}

const fn struct_pointer(offset: i32, data: u16, pointers: u16) -> u64 {
    (offset as u32 as u64) << 2 & 0xffff_fffc | (data as u64) << 32 | (pointers as u64) << 48
}

const fn list_pointer(offset: i32, element: u64, count: u64) -> u64 {
    1 | (offset as u32 as u64) << 2 & 0xffff_fffc | element << 32 | count << 35
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Pointers of every kind that lead nowhere good.
fn nasty() -> Vec<u64> {
    let mut all = vec![0, 1, 2, 3, u64::MAX, 1 << 63, 0xffff_fffc, 0x7fff_fffc];
    for offset in [-1, 0, 1, 2, 5, -2, -3, 0x1fff_ffff, -0x2000_0000] {
        for (data, pointers) in [(0, 0), (0, 1), (1, 0), (1, 1), (5, 0), (0xffff, 0xffff)] {
            all.push(struct_pointer(offset, data, pointers));
        }
        for element in 0..8 {
            for count in [0, 1, 7, 8, 9, 64, 0x1fff_ffff] {
                all.push(list_pointer(offset, element, count));
            }
        }
    }
    for landing in [0u64, 1, 2, 0x1fff_ffff] {
        for double in [0, 4] {
            for segment in [0u64, 1, 0xffff_ffff] {
                all.push(2 | double | landing << 3 | segment << 32);
            }
        }
    }
    for capability in [0u64, 1, 0xffff, 0x1_0000, 0xffff_ffff] {
        all.push(3 | capability << 32);
    }
    all
}

#[test]
fn lengths_that_are_not_words() {
    for length in 0..64 {
        send(&vec![0; length]);
        let mut server = Everything::default();
        let words = Words::dirty(64);
        let served = console::dispatch(&mut server, 0, &words.bytes()[..length], &mut [0; 128]);
        if length % 8 != 0 {
            assert_eq!(served, Err(Status::InvalidArgument), "{length} bytes");
        }
    }
}

#[test]
fn unaligned_messages() {
    let words = Words::of(&[0; 64]);
    for start in 1..8 {
        let served = thread_spawner::dispatch(
            &mut Everything::default(),
            0,
            &words.bytes()[start..start + 48],
            &mut [0; 128],
        );
        assert_eq!(served, Err(Status::InvalidArgument), "from byte {start}");
    }
}

#[test]
fn messages_longer_than_any_may_be() {
    let words = Words::of(&vec![0; 64 * 1024 + 8]);
    let mut server = Everything::default();
    let longest = console::dispatch(&mut server, 0, &words.bytes()[8..], &mut [0; 128]);
    assert!(longest.is_ok());
    let longer = console::dispatch(&mut server, 0, words.bytes(), &mut [0; 128]);
    assert_eq!(longer, Err(Status::InvalidArgument));
}

#[test]
fn every_nasty_root_pointer() {
    for root in nasty() {
        for length in 1..8 {
            let mut words = vec![root];
            words.resize(length, 0x0101_0101_0101_0101);
            send(&bytes(&words));
        }
    }
}

#[test]
fn every_nasty_pointer_behind_a_good_root() {
    for pointer in nasty() {
        for length in [0, 1, 2, 5] {
            let mut words = vec![struct_pointer(0, 0, 1), pointer];
            words.resize(2 + length, 0);
            send(&bytes(&words));
            // The same with a tag word that lies about its elements.
            for tag in [
                struct_pointer(1, 0, 0),
                struct_pointer(0x1fff_ffff, 0, 0),
                struct_pointer(-1, 1, 1),
            ] {
                words.truncate(2);
                words.push(tag);
                words.resize(3 + length, 0);
                send(&bytes(&words));
            }
        }
    }
}

#[test]
fn wrong_types_where_bytes_belong() {
    let refused = |pointer: u64, rest: &[u64]| {
        let mut words = vec![struct_pointer(0, 0, 1), pointer];
        words.extend(rest);
        let words = Words::of(&bytes(&words));
        console::dispatch(&mut Everything::default(), 0, words.bytes(), &mut [0; 128])
    };
    let invalid = Err(Status::InvalidArgument);
    assert_eq!(refused(struct_pointer(0, 1, 0), &[0]), invalid, "a struct");
    assert_eq!(refused(list_pointer(0, 0, 8), &[0]), invalid, "a list of nothing");
    assert_eq!(refused(list_pointer(0, 5, 1), &[0]), invalid, "a list of words");
    assert_eq!(refused(list_pointer(0, 6, 1), &[0]), invalid, "a list of pointers");
    assert_eq!(refused(list_pointer(0, 0, 0x1fff_ffff), &[]), invalid, "a huge list of nothing");
    assert_eq!(refused(list_pointer(0, 2, 9), &[0]), invalid, "one byte too many");
    assert_eq!(refused(2, &[list_pointer(0, 2, 8), 0]), invalid, "a far pointer to here");
    assert_eq!(refused(3, &[]), invalid, "a capability");
    assert_eq!(refused(list_pointer(-2, 2, 8), &[]), invalid, "words that were visited already");
    assert!(refused(list_pointer(0, 2, 8), &[0]).is_ok(), "eight bytes");
}

#[test]
fn a_segment_table_is_not_part_of_a_message() {
    // As a stream would carry it: one segment of three words. Read as a message, the table is
    // a root without pointers, so the text behind it is never found.
    let table = u64::from(3u32) << 32;
    let message = [table, struct_pointer(0, 0, 1), list_pointer(0, 2, 8), 0x4141_4141_4141_4141];
    let words = Words::of(&bytes(&message));
    let mut server = Everything::default();
    assert!(console::dispatch(&mut server, 0, words.bytes(), &mut [0; 128]).is_ok());
    assert_eq!(server.asked, [format!("{:?}", console::WriteParams { bytes: &[] })]);
    // Two segments: the root would be in the first, its bytes in the second.
    let table = [1 | 2 << 32, 2, struct_pointer(0, 0, 1), 2 | 1 << 32, list_pointer(0, 2, 8), 0];
    send(&bytes(&table));
    // Without the table, the far pointer has nowhere to go.
    let words = Words::of(&bytes(&table[2..]));
    let served = console::dispatch(&mut Everything::default(), 0, words.bytes(), &mut [0; 128]);
    assert_eq!(served, Err(Status::InvalidArgument));
}

#[test]
fn a_newer_client_may_send_more() {
    // Two more data words and a pointer this side does not know.
    let params = [struct_pointer(0, 7, 1), 1, 2, 3, 4, 0, 6, 7, 0];
    let words = Words::of(&bytes(&params));
    let mut server = Everything::default();
    let served = thread_spawner::dispatch(&mut server, 0, words.bytes(), &mut [0; 128]);
    assert!(matches!(served, Ok(Served::Results(_))), "{served:?}");
    let asked =
        thread_spawner::CreateParams { entry: 1, stack_top: 2, arg: 3, fs_base: 4, flags: 0 };
    assert_eq!(server.asked, [format!("{asked:?}")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_hostile_server_only_gets_an_error(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<u64>()), 0..10),
        cut in 0usize..8,
        is_exception in any::<bool>(),
    ) {
        let all = nasty();
        let words: Vec<u64> =
            picks.iter().map(|(index, take, word)| if *take { *index.get(&all) } else { *word }).collect();
        let answer = bytes(&words);
        let length = answer.len().saturating_sub(cut);
        let serve = |_: u16, _: &[u8], results: &mut [u8]| {
            results[..answer.len()].copy_from_slice(&answer);
            Ok(if is_exception { Served::Exception(length) } else { Served::Results(length) })
        };
        let slot = CapSlot::new(1, 1);
        let mut console = console::Client::new(Loopback::new(serve), slot);
        if let Ok(reading) = console.read(1000)
            && let Ok(results) = reading.get()
        {
            prop_assert!(results.bytes.len() <= length);
        }
        let mut info = system_info::Client::new(Loopback::new(serve), slot);
        let machine = info.machine();
        prop_assert!(machine.is_err() || !is_exception);
        let mut spawner = thread_spawner::Client::new(Loopback::new(serve), slot);
        let created = spawner.create(0, 0, 0, 0, 0);
        prop_assert!(created.is_err() || length.is_multiple_of(8));
    }

    #[test]
    fn random_words(words in prop::collection::vec(any::<u64>(), 0..16)) {
        send(&bytes(&words));
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        send(&bytes);
    }

    #[test]
    fn pointers_among_random_words(
        picks in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), any::<u64>()), 1..12)
    ) {
        let all = nasty();
        let words: Vec<u64> =
            picks.iter().map(|(index, take, word)| if *take { *index.get(&all) } else { *word }).collect();
        send(&bytes(&words));
    }

    #[test]
    fn good_messages_with_a_flipped_bit(text in prop::collection::vec(any::<u8>(), 0..40), bit in any::<prop::sample::Index>()) {
        let mut words = Words::dirty(64);
        let length = console::WriteParams { bytes: &text }.encode(words.bytes_mut()).unwrap();
        let bit = bit.index(length * 8);
        words.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
        send_words(&words.bytes()[..length]);
    }
}
