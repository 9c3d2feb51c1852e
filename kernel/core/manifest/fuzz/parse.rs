//! Fuzzes the manifest's check; what it accepts must be readable to the end.
#![no_main]

use core_manifest::{GrantKind, Manifest};
use libfuzzer_sys::fuzz_target;

#[repr(align(8))]
struct Aligned([u8; 8192]);

fuzz_target!(|input: &[u8]| {
    let mut aligned = Aligned([0; 8192]);
    let length = input.len().min(aligned.0.len());
    aligned.0[..length].copy_from_slice(&input[..length]);
    let Ok(manifest) = Manifest::check(&aligned.0[..length], |_| true) else { return };
    for process in manifest.processes().unwrap() {
        for grant in process.unwrap().grants() {
            if let GrantKind::Client { endpoint, .. } = grant.unwrap().kind {
                manifest.endpoint(endpoint).unwrap().unwrap();
            }
        }
    }
});
