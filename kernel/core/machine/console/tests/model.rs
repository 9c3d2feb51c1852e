//! What is written comes out of the line in order, once, and what is lost is counted; what arrives is read in order.

use core_console::{Drain, Input, portion};
use core_log::LogRing;
use std::collections::VecDeque;
use test_property::prelude::*;

fn for_a_terminal(text: &[u8]) -> Vec<u8> {
    text.iter().flat_map(|b| if *b == b'\n' { b"\r\n".to_vec() } else { vec![*b] }).collect()
}

proptest! {
    #[test]
    fn a_line_sends_all_there_is_room_for(
        capacity in 1usize..80,
        steps in prop::collection::vec((prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..40), 0usize..40), 0..60),
    ) {
        let mut storage = vec![0; capacity];
        let mut log = LogRing::new(&mut storage);
        let (mut drain, mut written, mut sent) = (Drain::new(), Vec::new(), Vec::new());
        for (text, take) in steps {
            // Those who mind ask for room first.
            let text = &text[..text.len().min(drain.room(&log))];
            log.push(text);
            written.extend_from_slice(text);
            let mut out = vec![0; take];
            let count = drain.take(&log, &mut out);
            sent.extend_from_slice(&out[..count]);
            prop_assert!(count == take || drain.is_done(&log));
            prop_assert!(drain.room(&log) <= capacity);
        }
        while !drain.is_done(&log) {
            let mut out = [0; 16];
            let count = drain.take(&log, &mut out);
            sent.extend_from_slice(&out[..count]);
        }
        prop_assert_eq!(sent, for_a_terminal(&written));
        prop_assert_eq!((drain.lost(), drain.room(&log)), (0, capacity));
    }

    #[test]
    fn what_is_overwritten_is_counted(
        capacity in 1usize..40,
        texts in prop::collection::vec(prop::collection::vec(b'a'..b'z', 0..60), 0..20),
    ) {
        let mut storage = vec![0; capacity];
        let mut log = LogRing::new(&mut storage);
        let (mut drain, mut sent, mut written) = (Drain::new(), 0, 0);
        for text in texts {
            log.push(&text);
            written += text.len() as u64;
            let mut out = [0; 7];
            sent += drain.take(&log, &mut out) as u64;
        }
        while !drain.is_done(&log) {
            sent += drain.take(&log, &mut [0; 7]) as u64;
        }
        prop_assert_eq!(sent + drain.lost(), written);
    }

    #[test]
    fn input_is_a_queue_with_an_end(steps in prop::collection::vec(any::<Option<u8>>(), 0..200)) {
        let mut input = Input::<8>::new();
        let (mut model, mut dropped) = (VecDeque::new(), 0);
        for step in steps {
            match step {
                Some(byte) => {
                    let fits = model.len() < 8;
                    prop_assert_eq!(input.push(byte), fits);
                    if fits { model.push_back(byte) } else { dropped += 1 }
                }
                None => prop_assert_eq!(input.pop(), model.pop_front()),
            }
            prop_assert_eq!((input.len(), input.is_empty()), (model.len(), model.is_empty()));
            prop_assert_eq!(input.dropped(), dropped);
        }
    }
}

#[test]
fn no_character_is_cut() {
    let text = "aµ€😀".repeat(9);
    for most in 4..text.len() + 4 {
        let length = portion(text.as_bytes(), most, 5);
        assert!(
            text.is_char_boundary(length) && length <= most && length + 4 > most.min(text.len())
        );
    }
    // What is no text is cut anywhere, and something is taken.
    assert_eq!(portion(&[0x80; 100], 20, 5), 20);
    assert_eq!(portion(&[0x80; 9], 2, 5), 2);
    assert_eq!(portion(b"", 20, 5), 0);
}

#[test]
fn so_many_lines_and_no_more() {
    let text = b"a\nb\n\nc";
    assert_eq!([1, 2, 3, 4].map(|lines| portion(text, 100, lines)), [2, 4, 5, 6]);
    assert_eq!(portion(text, 3, 2), 3);
    assert_eq!(portion(&[b'\n'; 50], 40, 16), 16);
}

#[test]
fn what_nobody_is_to_see_is_skipped() {
    let mut storage = [0; 32];
    let mut log = LogRing::new(&mut storage);
    let mut drain = Drain::new();
    log.push(b"a\nb");
    let mut out = [0; 2];
    assert_eq!((drain.take(&log, &mut out), out), (2, *b"a\r"));
    drain.skip(&log);
    assert!(drain.is_done(&log));
    log.push(b"c");
    assert_eq!((drain.take(&log, &mut out), out[0], drain.lost()), (1, b'c', 0));
    assert!(!Input::<0>::new().push(1));
}
