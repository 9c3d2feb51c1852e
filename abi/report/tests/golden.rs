//! The bytes on the wire, written down: a change here breaks every guest already built.

use abi_report::{Damage, Decoder, Encoder, Item, Record, Sink};

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn encode(records: &[Record<'_>]) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(), Bytes(Vec::new()));
    for record in records {
        encoder.send(&mut bytes, record);
    }
    bytes.0
}

fn decode(bytes: &[u8]) -> Vec<String> {
    let (mut decoder, mut seen) = (Decoder::new(), Vec::new());
    for byte in bytes {
        decoder.push(*byte, |item| seen.push(format!("{item:?}")));
    }
    seen.extend(decoder.finish().map(|damage| format!("{:?}", Item::Damage(damage))));
    seen
}

/// CRC-32C (Castagnoli), bit by bit: independent of the crate the encoder uses.
fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1));
        }
    }
    !crc
}

#[test]
fn checksum_is_castagnolis() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    // `run` of "a": version 1, kind 2, sequence 0, length 1, 'a'.
    let body = [1, 2, 0, 0, 0, 0, 1, b'a'];
    let frame = encode(&[Record::Run { id: "a" }]);
    assert_eq!(frame[frame.len() - 5..frame.len() - 1], crc32c(&body).to_le_bytes());
}

#[test]
fn golden_bytes() {
    let records = [
        Record::Plan { index: 0, total: 2, id: "t.a" },
        Record::Run { id: "t.a" },
        Record::Ok { id: "t.a" },
        Record::Fail { id: "t.b", line: 0x0102_0304, file: "f.rs", message: "1 != 2" },
        Record::Skip { id: "t.c", reason: "one CPU" },
        Record::Metric { id: "t.c", name: "m", value: 0x1122_3344_5566_7788, unit: "ns" },
        Record::Done { passed: 1, failed: 1, skipped: 1 },
    ];
    let frames: Vec<String> = encode(&records)
        .split(|byte| *byte == 0)
        .filter(|frame| !frame.is_empty())
        .map(hex)
        .collect();
    let golden = [
        "03010101010101010101020201010903742e6193a352b9",
        "0401020101010903742e610566a43e",
        "0401030201010903742e612437de11",
        "0401040301011903742e620403020104662e7273063120213d203263bdb831",
        "0401050401011103742e63076f6e6520435055d5c87cb9",
        "0401060501011603742e63016d8877665544332211026e73145178ec",
        "040107060101020101010201010102010101052a6ee6de",
    ];
    assert_eq!(frames, golden);
    assert_eq!(decode(&encode(&records)).len(), records.len());
}

#[test]
fn a_run_of_254_bytes_without_zero_and_its_neighbours_survive() {
    // Texts of lengths around the group size of byte stuffing, with no zero inside.
    for len in 200..=240 {
        let text = "x".repeat(len);
        let record = Record::Skip { id: &"i".repeat(96), reason: &text };
        assert_eq!(
            decode(&encode(&[record])),
            [format!("{:?}", Item::Record { sequence: 0, record })]
        );
    }
}

#[test]
fn too_long_text_is_cut_between_characters() {
    let path = "é".repeat(200);
    let message = format!("x{}", "é".repeat(200));
    let bytes = encode(&[Record::Fail { id: "t", line: 1, file: &path, message: &message }]);
    let cut = Record::Fail {
        id: "t",
        line: 1,
        file: &"é".repeat(60),
        message: &format!("x{}", "é".repeat(119)),
    };
    assert_eq!(decode(&bytes), [format!("{:?}", Item::Record { sequence: 0, record: cut })]);
}

#[test]
fn a_frame_cut_by_the_next_costs_only_itself() {
    let mut bytes = encode(&[Record::Run { id: "a" }]);
    let second = encode(&[Record::Run { id: "a" }, Record::Ok { id: "a" }]);
    bytes.truncate(bytes.len() - 3);
    bytes.extend(&second[second.len() / 2 - 1..]);
    let seen = decode(&bytes);
    assert!(seen[0].contains("Garbage"), "{seen:?}");
    assert!(seen.last().unwrap().contains("Ok { id: \"a\" }"), "{seen:?}");
}

#[test]
fn an_end_inside_a_frame_is_told() {
    let bytes = encode(&[Record::Run { id: "a" }]);
    let mut decoder = Decoder::new();
    for byte in &bytes[..bytes.len() - 1] {
        decoder.push(*byte, |item| panic!("{item:?}"));
    }
    assert_eq!(decoder.finish(), Some(Damage::Truncated { len: bytes.len() - 2 }));
}

#[test]
fn an_id_that_is_none_is_garbage() {
    let seen = decode(&encode(&[Record::Run { id: "Not An Id" }]));
    assert!(seen[0].contains("Garbage"), "{seen:?}");
}
