//! What is read when a system starts: programs and the manifest.

use core_elf::Image;
use core_manifest::Manifest;
use std::hint::black_box;

use crate::Bench;

/// A file the BUILD file names, 8-aligned as a boot module is.
fn file(variable: &str) -> Vec<u64> {
    let path = std::env::var(variable).expect("run by Bazel");
    let bytes = std::fs::read(path).expect("the file is there");
    let mut words = vec![0; bytes.len().div_ceil(8)];
    for (at, byte) in bytes.iter().enumerate() {
        words[at / 8] |= u64::from(*byte) << (at % 8 * 8);
    }
    words
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Times each.
pub fn run(bench: &Bench) {
    let program = bytes(&file("PROGRAM"));
    bench.run("elf: check a program", |_| {
        let _ = black_box(Image::parse(black_box(&program[..])).expect("the linker made it"));
    });
    let manifest = bytes(&file("MANIFEST"));
    bench.run("manifest: check two processes", |_| {
        let checked = Manifest::check(black_box(&manifest), |_| true);
        let _ = black_box(checked.expect("the build checked it").process_count());
    });
}
