//! Any bytes as the user of a ring: the kernel's half stays in the block, within its limits and
//! true to its counts.
#![no_main]
libfuzzer_sys::fuzz_target!(|script: &[u8]| abi_ring_testing::hostile_session(script));
