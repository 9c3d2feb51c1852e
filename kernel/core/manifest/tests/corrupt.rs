//! A small manifest, damaged in every way a bit or a length can: refused or still consistent,
//! never a panic, never more work than the blob has words.
use core_manifest::{Error, GrantKind, Manifest};
use schema::manifest_capnp::manifest;
use zerocopy::IntoBytes;

fn small() -> Vec<u64> {
    let mut message = capnp::message::Builder::new_default();
    let mut list = message.init_root::<manifest::Builder>().init_processes(2);
    let mut server = list.reborrow().get(0);
    server.set_name("server");
    server.set_binary("a.elf");
    server.reborrow().init_profile().set_threads(3);
    let mut grants = server.init_grants(2);
    grants.reborrow().get(0).set_name("in");
    let mut endpoint = grants.reborrow().get(0).init_endpoint();
    endpoint.set_name("echo");
    endpoint.set_interface_id(0x8000_0000_0000_0001);
    let mut timer = grants.get(1);
    timer.set_name("timer");
    timer.set_timer(());
    let mut client = list.get(1);
    client.set_name("client");
    client.set_binary("a.elf");
    let mut grant = client.init_grants(1).get(0);
    grant.set_name("out");
    let mut facet = grant.init_client();
    facet.set_endpoint("echo");
    facet.set_badge(5);
    let root = message.get_root_as_reader::<manifest::Reader>().unwrap();
    let mut canonical = capnp::message::Builder::new_default();
    canonical.set_root_canonical(root).unwrap();
    let segments = canonical.get_segments_for_output();
    let mut words = vec![0u64; segments[0].len() / 8];
    words.as_mut_bytes().copy_from_slice(segments[0]);
    words
}

/// Checks `bytes`; what is accepted must be readable to the end and consistent.
fn probe(bytes: &[u8]) -> Result<(), Error> {
    let manifest = Manifest::check(bytes, |_| true)?;
    let mut seen = 0;
    for process in manifest.processes()? {
        let process = process.expect("an accepted process");
        for grant in process.grants() {
            seen += 1;
            if let GrantKind::Client { endpoint, .. } = grant.expect("an accepted grant").kind {
                assert!(manifest.endpoint(endpoint).expect("accepted").is_some());
            }
        }
    }
    assert!(seen * 8 <= bytes.len(), "{seen} grants in {} bytes", bytes.len());
    Ok(())
}

#[test]
fn the_whole_is_accepted() {
    assert_eq!(probe(small().as_bytes()), Ok(()));
}

#[test]
fn every_truncation_is_refused() {
    let words = small();
    let bytes = words.as_bytes();
    for length in 0..bytes.len() {
        assert!(probe(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn more_than_the_whole_is_refused() {
    let mut words = small();
    words.push(0);
    assert_eq!(probe(words.as_bytes()), Err(Error::NotCanonical));
    assert_eq!(
        probe(&words.as_bytes()[..words.len() * 8 - 3]),
        Err(Error::Length(words.len() * 8 - 3))
    );
    assert_eq!(probe(&words.as_bytes()[4..words.len() * 8 - 4]), Err(Error::Unaligned));
    let huge = vec![0u64; 256 * 1024 / 8 + 1];
    assert_eq!(probe(huge.as_bytes()), Err(Error::Length(256 * 1024 + 8)));
}

#[test]
fn every_flipped_bit_is_refused_or_harmless() {
    let good = small();
    let mut accepted = 0;
    for bit in 0..good.len() * 64 {
        let mut words = good.clone();
        words[bit / 64] ^= 1 << (bit % 64);
        accepted += usize::from(probe(words.as_bytes()).is_ok());
    }
    // Letters of names, the badge and numbers within their range can change; pointers cannot.
    assert!(accepted > 0 && accepted < good.len() * 64 / 2, "{accepted} accepted");
}

#[test]
fn every_word_replaced_by_a_bad_one() {
    let good = small();
    let bad = [
        0,
        1,
        2,
        3,
        u64::MAX,
        1 << 63,
        0xffff_fffc,
        1 | 7 << 32 | 0x1fff_ffff << 35,
        6,
        2 | 1 << 32,
    ];
    for index in 0..good.len() {
        for word in bad.into_iter().chain(good.iter().copied()) {
            let mut words = good.clone();
            words[index] = word;
            let _ = probe(words.as_bytes());
        }
    }
}
