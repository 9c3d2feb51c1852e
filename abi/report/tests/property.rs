//! Any record survives the wire; any damage is told; no bytes make the decoder panic.

use abi_report::{Damage, Decoder, Encoder, FRAME_MAX, Item, Record, Sink};
use test_property::prelude::*;

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn write(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

#[derive(Clone, Debug)]
struct Owned {
    kind: u8,
    id: String,
    file: String,
    text: String,
    a: u32,
    b: u32,
    value: u64,
}

impl Owned {
    fn record(&self) -> Record<'_> {
        let (id, name) = (self.id.as_str(), "cycles");
        match self.kind {
            0 => Record::Plan { index: self.a, total: self.b, id },
            1 => Record::Run { id },
            2 => Record::Ok { id },
            3 => Record::Fail { id, line: self.a, file: &self.file, message: &self.text },
            4 => Record::Skip { id, reason: &self.text },
            5 => Record::Metric { id, name, value: self.value, unit: "ns" },
            _ => Record::Done { passed: self.a, failed: self.b, skipped: self.a ^ self.b },
        }
    }
}

prop_compose! {
    fn owned()(
        kind in 0u8..7,
        id in "[a-z0-9_./:-]{1,96}",
        // Zeros and bytes of every weight, within the limits so that nothing is cut.
        file in "[\\x00-\\x7f]{0,120}",
        text in "[\\x00-\\x7f]{0,240}",
        a in any::<u32>(),
        b in any::<u32>(),
        value in any::<u64>(),
    ) -> Owned {
        Owned { kind, id, file, text, a, b, value }
    }
}

fn encode(records: &[Owned]) -> Vec<u8> {
    let (mut encoder, mut bytes) = (Encoder::new(), Bytes(Vec::new()));
    for owned in records {
        encoder.send(&mut bytes, &owned.record());
    }
    bytes.0
}

/// (records as text with their numbers, damages)
fn decode(bytes: &[u8]) -> (Vec<String>, Vec<Damage>) {
    let (mut decoder, mut records, mut damages) = (Decoder::new(), Vec::new(), Vec::new());
    for byte in bytes {
        decoder.push(*byte, |item| match item {
            Item::Record { sequence, record } => records.push(format!("{sequence} {record:?}")),
            Item::Damage(damage) => damages.push(damage),
        });
    }
    damages.extend(decoder.finish());
    (records, damages)
}

fn expected(records: &[Owned]) -> Vec<String> {
    records.iter().enumerate().map(|(i, o)| format!("{i} {:?}", o.record())).collect()
}

proptest! {
    #[test]
    fn round_trip(records in prop::collection::vec(owned(), 0..20)) {
        prop_assert_eq!(decode(&encode(&records)), (expected(&records), vec![]));
    }

    #[test]
    fn a_changed_byte_never_passes_unseen(
        records in prop::collection::vec(owned(), 1..8), at in any::<prop::sample::Index>(), flip in 1u8..
    ) {
        let mut bytes = encode(&records);
        // The delimiters at both ends may become noise or an empty frame; all others matter.
        let at = 1 + at.index(bytes.len() - 2);
        bytes[at] ^= flip;
        let (seen, damages) = decode(&bytes);
        prop_assert!(!damages.is_empty() || seen == expected(&records));
        prop_assert!(seen.iter().all(|record| expected(&records).contains(record)));
    }

    #[test]
    fn a_lost_stretch_is_seen_at_the_next_frame(
        records in prop::collection::vec(owned(), 3..8), from in any::<prop::sample::Index>(), len in 1usize..2000
    ) {
        let mut bytes = encode(&records);
        let from = from.index(bytes.len());
        let to = (from + len).min(bytes.len());
        bytes.drain(from..to);
        let (seen, damages) = decode(&bytes);
        // Whole frames lost at the very end leave no trace here: the count is the witness then.
        let is_prefix = expected(&records).starts_with(&seen);
        prop_assert!(!damages.is_empty() || is_prefix);
    }

    #[test]
    fn whole_frames_lost_before_another_are_told_by_number(
        records in prop::collection::vec(owned(), 2..8), from in any::<prop::sample::Index>(), len in 1usize..8
    ) {
        let from = from.index(records.len() - 1);
        let to = (from + len).min(records.len() - 1);
        let frames: Vec<Vec<u8>> = encode(&records)
            .split_inclusive(|byte| *byte == 0)
            .filter(|piece| piece.len() > 1)
            .map(<[u8]>::to_vec)
            .collect();
        prop_assert_eq!(frames.len(), records.len());
        let kept: Vec<u8> = [&frames[..from], &frames[to..]].concat().concat();
        let gap = Damage::OutOfSequence { expected: from as u32, found: to as u32 };
        let (seen, damages) = decode(&kept);
        prop_assert_eq!(damages, [gap]);
        prop_assert_eq!(seen.len(), records.len() - (to - from));
    }

    #[test]
    fn hostile_bytes_are_damage_and_the_decoder_stays_in_step(
        noise in prop::collection::vec(any::<u8>(), 0..3 * FRAME_MAX), records in prop::collection::vec(owned(), 1..4)
    ) {
        let mut bytes = noise.clone();
        bytes.extend(encode(&records));
        let (seen, damages) = decode(&bytes);
        prop_assert!(seen.ends_with(&expected(&records)));
        prop_assert_eq!(damages.is_empty(), noise.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn nearly_right_bytes_do_not_panic(pieces in prop::collection::vec((any::<u8>(), 0usize..300), 0..8)) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|(b, n)| std::iter::repeat_n(*b, *n).chain([0])).collect();
        let (seen, _) = decode(&bytes);
        prop_assert!(seen.is_empty());
    }
}
