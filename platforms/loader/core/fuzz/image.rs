//! Any bytes are an executable whose segments lie in the file, or are refused.
#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(image) = loader_core::image::Image::parse(data) {
        for segment in &image.segments {
            assert!(segment.offset + segment.file_size <= data.len() as u64);
        }
        let _ = image.slide(Some(data.len() as u64));
    }
});
