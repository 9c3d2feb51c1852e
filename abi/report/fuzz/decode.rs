//! Any bytes: the decoder never panics, and what it takes for a record encodes to itself.
#![no_main]
use abi_report::{Decoder, Encoder, Item, Sink};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut decoder = Decoder::new();
    for byte in data {
        decoder.push(*byte, |item| {
            if let Item::Record { record, .. } = item {
                let mut again = Bytes(Vec::new());
                Encoder::new().send(&mut again, &record);
                let mut seen = 0;
                let mut reader = Decoder::new();
                for byte in again.0 {
                    reader.push(byte, |item| {
                        assert_eq!(item, Item::Record { sequence: 0, record });
                        seen += 1;
                    });
                }
                assert_eq!(seen, 1);
            }
        });
    }
    let _ = decoder.finish();
});
