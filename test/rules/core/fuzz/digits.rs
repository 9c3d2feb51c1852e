//! Any bytes have a digit sum of at most nine times their number.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    assert!(rules_core::digit_sum(data) <= 9 * data.len() as u64);
});
