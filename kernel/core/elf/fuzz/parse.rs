//! Fuzzes the parser; what it accepts must lie in the file and in the image's range, in order.
#![no_main]

use core_elf::{Image, limits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(image) = Image::parse(input) else { return };
    let mut end = limits::FIRST_VADDR;
    let mut total = 0;
    for segment in image.segments() {
        assert!(segment.start >= end && segment.end() > segment.start);
        assert!(segment.bytes.offset + segment.bytes.length <= input.len() as u64);
        assert!(segment.offset + segment.bytes.length <= segment.pages * 4096);
        let (zeros, bytes) = segment.page(segment.pages - 1);
        assert!(zeros as u64 + bytes.length <= 4096);
        end = segment.end();
        total += segment.pages;
    }
    assert!(end <= limits::END_VADDR && total * 4096 <= limits::IMAGE_BYTES);
    let guards: u64 = image.guards().declared().iter().map(|guards| guards.count).sum();
    assert_eq!(total - guards, image.pages());
    // What is mapped has no guard in it, and all else of the segments.
    let mut end = 0;
    let mut mapped = 0;
    for part in image.parts() {
        assert!(part.start >= end && part.pages > 0);
        let last = part.end() - 1;
        assert!(image.guards().overflow(part.start).is_none());
        assert!(image.guards().overflow(last).is_none());
        assert!(image.segments().iter().any(|s| s.start <= part.start && last < s.end()));
        end = part.end();
        mapped += part.pages;
    }
    assert_eq!(mapped, image.pages());
    assert_eq!(image.segments().iter().filter(|s| s.is_code(image.entry())).count(), 1);
    if let Some(tls) = image.tls() {
        let layout = tls.layout();
        assert!(layout.image + tls.memory_size <= layout.thread_pointer);
        assert!(tls.image.length <= tls.memory_size);
        assert_eq!(layout.thread_pointer % tls.align, 0);
    }
});
