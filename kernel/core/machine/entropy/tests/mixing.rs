//! What is mixed counts, all of it, and nothing that was handed out comes again.

use blake2::{Blake2b512, Digest};
use core_entropy::{Jitter, Pool, Source, is_stuck};
use std::collections::HashSet;

fn output(pool: &Pool, bytes: usize) -> Vec<u8> {
    let mut out = vec![0; bytes];
    pool.clone().fork().fill(&mut out);
    out
}

fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn every_bit_of_every_source_changes_half_of_the_output() {
    let texts: [(Source, &[u8]); 3] = [
        (Source::Facts, b"a machine that everybody knows"),
        (Source::Seed, &[0x5a; 16]),
        (Source::Jitter, &[7; 24]),
    ];
    let pool_of = |flipped: Option<(usize, usize)>| {
        let mut pool = Pool::new();
        for (index, (source, text)) in texts.iter().enumerate() {
            let mut text = text.to_vec();
            if let Some((_, bit)) = flipped.filter(|(of, _)| *of == index) {
                text[bit / 8] ^= 1 << (bit % 8);
            }
            pool.mix(*source, &text, 0);
        }
        pool
    };
    let usual = output(&pool_of(None), 64);
    assert_eq!(usual, output(&pool_of(None), 64), "the same is mixed to the same");
    for (index, (_, text)) in texts.iter().enumerate() {
        for bit in 0..text.len() * 8 {
            let other = output(&pool_of(Some((index, bit))), 64);
            let differing = differing_bits(&usual, &other);
            assert!((180..=332).contains(&differing), "{index}, {bit}: {differing} of 512");
        }
    }
}

#[test]
fn how_a_text_is_cut_and_where_it_comes_from_counts() {
    let one = |parts: &[(Source, &[u8])]| {
        let mut pool = Pool::new();
        parts.iter().for_each(|(source, text)| pool.mix(*source, text, 0));
        output(&pool, 32)
    };
    let (s, g) = (Source::Seed, Source::Generator);
    let outputs = [
        one(&[(s, b"abc")]),
        one(&[(g, b"abc")]),
        one(&[(s, b"ab"), (s, b"c")]),
        one(&[(s, b"a"), (s, b"bc")]),
        one(&[(s, b"c"), (s, b"ab")]),
        one(&[(s, b"abc"), (s, b"")]),
        one(&[]),
    ];
    assert_eq!(outputs.iter().collect::<HashSet<_>>().len(), outputs.len());
}

#[test]
fn a_pool_believes_no_more_than_the_bytes_hold() {
    let mut pool = Pool::new();
    pool.mix(Source::Facts, &[1; 100], 0);
    assert_eq!(pool.bits(), 0);
    pool.mix(Source::Seed, &[2; 8], 1_000);
    pool.mix(Source::Jitter, &[3; 400], 100);
    assert_eq!(pool.bits(), 164);
}

/// The construction once more, by hand.
#[test]
fn the_output_is_the_hash_it_is_said_to_be() {
    let hash = |state: &[u8], of: u8, number: u64, part: Option<&[u8]>| -> Vec<u8> {
        let mut text = state.to_vec();
        text.push(of);
        text.extend(number.to_le_bytes());
        if let Some(part) = part {
            text.extend((part.len() as u64).to_le_bytes());
            text.extend(part);
        }
        Blake2b512::digest(text).to_vec()
    };
    let mut pool = Pool::new();
    pool.mix(Source::Seed, b"seed", 32);
    let state = hash(&[0; 64], 1, 2, Some(b"seed"));
    let key = hash(&state, 2, 0, None);
    let mut generator = pool.fork();
    let mut out = [0; 100];
    generator.fill(&mut out);
    let expected = [hash(&key, 3, 0, None), hash(&key, 3, 1, None)].concat();
    assert_eq!(out, expected[..100]);
    let next = hash(&key, 4, 0, None);
    generator.fill(&mut out);
    assert_eq!(out[..64], hash(&next, 3, 0, None));
}

#[test]
fn nothing_comes_twice() {
    let mut pool = Pool::new();
    pool.mix(Source::Seed, b"known", 0);
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let mut generator = pool.fork();
        for length in [8, 8, 64, 65, 200] {
            let mut out = vec![0; length];
            generator.fill(&mut out);
            for word in out.chunks_exact(8) {
                assert!(seen.insert(word.to_vec()), "a word comes twice");
            }
        }
        generator.fill(&mut []);
    }
}

#[test]
fn ones_and_zeroes_are_as_many() {
    let mut out = vec![0; 1 << 20];
    Pool::new().fork().fill(&mut out);
    let ones: u64 = out.iter().map(|byte| u64::from(byte.count_ones())).sum();
    // Six standard deviations of 2²³ tosses: 6 × √2²¹.
    assert!(ones.abs_diff(1 << 22) < 8_700, "{ones}");
}

#[test]
fn durations_count_unless_they_repeat() {
    let of = |samples: &mut dyn Iterator<Item = u64>| {
        let mut jitter = Jitter::default();
        samples.for_each(|ticks| jitter.sample(ticks));
        jitter.bits()
    };
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 60
    };
    assert_eq!(of(&mut (0..1024).map(|_| 1000 + noise())), 256);
    assert_eq!(of(&mut (0..1024).map(|_| 1000)), 0, "a clock without noise");
    assert_eq!(of(&mut (0..80).map(|_| 5)), 20);
    assert_eq!(of(&mut (0..81).map(|_| 5)), 0, "81 times in a row");
    let rarely = (0..1024u64).map(|n| if n % 16 == 15 { n } else { 7 });
    assert_eq!(of(&mut { rarely }), 0, "one value nearly always");
    // Health is not regained.
    assert_eq!(of(&mut (0..81).map(|_| 5).chain(0..1000)), 0);
}

#[test]
fn a_stuck_source_is_seen() {
    assert!(is_stuck(&[u64::MAX; 4]) && is_stuck(&[0; 4]));
    assert!(!is_stuck(&[1, 1, 1, 2]) && !is_stuck(&[1, 2, 2, 2]));
}
