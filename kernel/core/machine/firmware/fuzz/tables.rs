//! Tables of any bytes: nothing of them makes the reader fail, and what it believes is in range.
#![no_main]

use core_firmware::power::{PowerOff, Reset, dsdt_address, sleep_types};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let types = sleep_types(bytes);
    if let Ok(types) = types {
        assert!(types.first < 8 && types.second < 8);
    }
    if let Ok(off) = PowerOff::of(bytes, types) {
        assert!(off.pm1a != 0);
    }
    // The rest answers or does not.
    let _ = (Reset::of(bytes), dsdt_address(bytes));
    let _ = (core_firmware::root(bytes), core_firmware::check(bytes));
    for is_wide in [false, true] {
        assert!(core_firmware::entries(bytes, is_wide).count() <= bytes.len() / 4);
    }
});
