//! A buffer against a list of records: sessions, a full buffer, readers anywhere.

use abi_sync::atomic::AtomicU64;
use smp_trace::*;
use test_property::prelude::*;

const CAPACITY: usize = 5;

fn buffer() -> Buffer<Vec<AtomicU64>> {
    Buffer::new((0..CAPACITY * RECORD_WORDS).map(|_| AtomicU64::new(u64::MAX)).collect())
}

fn record(number: u64) -> Record {
    Record {
        time_ns: number,
        kind: number as u16 ^ 0x55,
        category: 3,
        thread: !number as u32,
        a: number << 32,
        b: !number,
    }
}

#[derive(Clone, Debug)]
enum Op {
    Start(u32),
    Stop,
    Point(u32),
    Read(u64, usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => (0_u32..4).prop_map(Op::Start),
        1 => Just(Op::Stop),
        8 => (0_u32..3).prop_map(|bit| Op::Point(1 << bit)),
        4 => (0_u64..9, 0_usize..8).prop_map(|(position, room)| Op::Read(position, room)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn a_session_is_a_list_that_ends(ops in prop::collection::vec(op(), 1..60)) {
        let (control, buffer) = (Control::new(), buffer());
        let mut model: Vec<Record> = Vec::new();
        let (mut categories, mut lost, mut number) = (0, 0, 0);
        for op in ops {
            match op {
                Op::Start(wanted) => {
                    let session = control.start(wanted);
                    prop_assert_eq!(session, control.session());
                    model.clear();
                    (categories, lost) = (wanted, 0);
                }
                Op::Stop => {
                    control.stop();
                    categories = 0;
                }
                Op::Point(category) => {
                    number += 1;
                    prop_assert_eq!(control.is_on(category), categories & category != 0);
                    if control.is_on(category) {
                        buffer.record(control.session(), &record(number));
                        if model.len() < CAPACITY {
                            model.push(record(number));
                        } else {
                            lost += 1;
                        }
                    }
                }
                Op::Read(position, room) => {
                    let mut to = vec![Record::default(); room];
                    let portion = buffer.read(control.session(), position, &mut to);
                    let from = model.len().min(position as usize);
                    let expected: Vec<_> = model[from..].iter().take(room).copied().collect();
                    prop_assert_eq!(portion.copied, expected.len());
                    prop_assert_eq!(&to[..portion.copied], &expected);
                    prop_assert_eq!(portion.next, position + portion.copied as u64);
                    prop_assert_eq!(portion.lost, lost);
                    let counts = (model.len() as u64, lost);
                    prop_assert_eq!(buffer.counts(control.session()), counts);
                }
            }
            prop_assert_eq!(control.categories(), categories);
        }
    }
}

#[test]
fn records_are_32_bytes_and_keep_their_fields() {
    assert_eq!((size_of::<[u64; RECORD_WORDS]>(), RECORD_BYTES), (32, 32));
    for number in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
        assert_eq!(Record::of(record(number).words()), record(number));
    }
}

#[test]
fn the_bytes_of_a_record_are_its_words() {
    let bytes: Vec<u8> = record(7).words().iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(zerocopy::IntoBytes::as_bytes(&record(7)), bytes);
}

#[test]
fn a_buffer_has_no_memory_until_it_is_given_some() {
    let (control, buffer) = (Control::new(), Buffer::new(Memory::new()));
    let session = control.start(1);
    buffer.record(session, &record(1));
    assert_eq!((buffer.capacity(), buffer.counts(session)), (0, (0, 1)));
    let words: Vec<_> = (0..2 * RECORD_WORDS).map(|_| AtomicU64::new(0)).collect();
    assert!(buffer.memory().set(words.leak()));
    let session = control.start(1);
    buffer.record(session, &record(2));
    assert_eq!((buffer.capacity(), buffer.counts(session)), (2, (1, 0)));
}

#[test]
fn a_buffer_without_room_only_counts() {
    let (control, buffer) = (Control::new(), Buffer::new(Vec::<AtomicU64>::new()));
    let session = control.start(1);
    buffer.record(session, &record(1));
    assert_eq!(buffer.capacity(), 0);
    let portion = buffer.read(session, 0, &mut [Record::default(); 2]);
    assert_eq!(portion, Portion { copied: 0, next: 0, lost: 1 });
    // Another session is none of this buffer's business.
    let portion = buffer.read(control.start(1), 0, &mut [Record::default(); 2]);
    assert_eq!(portion, Portion { copied: 0, next: 0, lost: 0 });
}
