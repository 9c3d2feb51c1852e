//! Good calls of every method, damaged: each bit flipped, each word replaced by a bad pointer,
//! cut and shifted. No method panics, and what is refused did nothing.
use schema::INTERFACES;
use schema_testing::{Call, Everything, Words, calls, serve};
use schema_wire::{Served, Status};
use test_property::prelude::*;

fn interface_name(call: &Call) -> &'static str {
    INTERFACES.iter().find(|one| one.id == call.interface).unwrap().name
}

fn send(call: &Call, bytes: &[u8]) -> Result<Served, Status> {
    let mut server = Everything { input: vec![7; 500], ..Everything::default() };
    let mut results = Words::dirty(1024);
    let served =
        serve(&mut server, interface_name(call), call.method, bytes, results.bytes_mut()).unwrap();
    match served {
        Ok(Served::Results(length) | Served::Exception(length)) => assert!(length <= 1024),
        Ok(Served::Later) => {}
        Err(status) => {
            assert_eq!(status, Status::InvalidArgument, "{}", call.name);
            assert_eq!(server.asked, [""; 0], "{}: a refused call did something", call.name);
        }
    }
    served
}

/// Every method that takes something is here, so that a new one is not forgotten.
#[test]
fn every_method_with_parameters_is_called() {
    let all = calls(1);
    for interface in INTERFACES {
        for method in interface.methods {
            let takes = method.params.data_words + method.params.pointers > 0;
            let called =
                |one: &&Call| one.interface == interface.id && one.method == method.ordinal;
            let count = all.iter().filter(called).count();
            assert_eq!(count, usize::from(takes), "{}.{}", interface.name, method.name);
        }
    }
}

#[test]
fn good_calls_are_served() {
    for number in 0..200 {
        for call in calls(number) {
            assert!(send(&call, call.params.bytes()).is_ok(), "{}", call.name);
        }
    }
}

#[test]
fn each_bit_flipped() {
    for number in 0..4 {
        for call in calls(number) {
            let mut words = call.params.clone();
            for bit in 0..words.bytes().len() * 8 {
                words.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
                let _ = send(&call, words.bytes());
                words.bytes_mut()[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}

#[test]
fn cut_at_each_byte_and_shifted() {
    for call in calls(3) {
        for length in 0..call.params.bytes().len() {
            let served = send(&call, &call.params.bytes()[..length]);
            if !length.is_multiple_of(8) {
                assert_eq!(served, Err(Status::InvalidArgument), "{} of {length}", call.name);
            }
        }
        let mut shifted = vec![0; 8];
        shifted.extend(call.params.bytes());
        let shifted = Words::of(&shifted);
        for start in 1..8 {
            let served = send(&call, &shifted.bytes()[start..start + call.params.bytes().len()]);
            assert_eq!(served, Err(Status::InvalidArgument), "{} from {start}", call.name);
        }
    }
}

/// What nobody honest has in place of a word: pointers of each kind that lead out, back, to
/// themselves, to another segment, or to half a billion elements.
const NASTY: [u64; 20] = [
    u64::MAX,
    0xffff_ffff_0000_0000,
    0x0000_0001_ffff_fffc,
    0x0001_0000_ffff_fffc,
    0xffff_ffff_ffff_fffc,
    0x0001_0000_ffff_fff8,
    0x0000_0000_0000_0002,
    0x0000_0001_0000_0002,
    0xffff_ffff_0000_000a,
    0x0000_0000_0000_0006,
    0xffff_fff8_0000_0001,
    0xffff_ffff_ffff_fffd,
    0xffff_fffa_0000_0001,
    0xffff_ffff_0000_0001,
    0xffff_fff9_0000_0001,
    0x0000_000f_ffff_fffd,
    0x0000_0007_0000_0001,
    0xffff_ffff_0000_0003,
    0x0001_0000_0000_0003,
    0x7fff_ffff_7fff_fffc,
];

#[test]
fn each_word_replaced() {
    for number in 0..8 {
        for call in calls(number) {
            for at in (0..call.params.bytes().len()).step_by(8) {
                for nasty in NASTY {
                    let mut words = call.params.clone();
                    words.bytes_mut()[at..at + 8].copy_from_slice(&nasty.to_le_bytes());
                    let _ = send(&call, words.bytes());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn several_words_replaced(
        number in any::<u64>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..NASTY.len() + 4, any::<u64>()), 1..5),
    ) {
        for call in calls(number) {
            let mut words = call.params.clone();
            let count = words.bytes().len() / 8;
            if count == 0 {
                continue;
            }
            for (at, nasty, random) in &damage {
                let at = at.index(count) * 8;
                let word = NASTY.get(*nasty).copied().unwrap_or(*random);
                words.bytes_mut()[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
            let _ = send(&call, words.bytes());
        }
    }
}
