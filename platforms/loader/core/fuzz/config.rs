//! Any bytes are a configuration or are refused with a line that exists.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = loader_core::config::parse(data) {
        let lines = data.iter().filter(|byte| **byte == b'\n').count() + 1;
        assert!(error.line as usize <= lines);
    }
});
