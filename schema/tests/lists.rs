//! Lists in messages: against the stock builder and reader, and as nobody honest writes them.
use probe::probe as generated;
use probe::probe_capnp::{Colour, lists};
use schema_testing::Words;
use schema_wire::{Encode, List, Message, TransferIndex, WireError};
use test_property::prelude::*;

fn flat() -> impl Strategy<Value = generated::Flat> {
    (any::<u32>(), 0_u16..3, any::<bool>(), any::<u64>()).prop_map(|(a, b, c, d)| generated::Flat {
        a,
        b: Colour::try_from(b).unwrap(),
        c,
        d,
    })
}

fn stock_flat(mut to: probe::probe_capnp::flat::Builder<'_>, flat: generated::Flat) {
    to.set_a(flat.a);
    to.set_b(flat.b);
    to.set_c(flat.c);
    to.set_d(flat.d);
}

fn encode(value: &impl Encode) -> Words {
    let mut words = Words::dirty(value.message_bytes());
    assert_eq!(value.encode(words.bytes_mut()), Ok(value.message_bytes()));
    words
}

fn nothing<'a>() -> generated::Lists<'a> {
    generated::Lists {
        words: List::EMPTY,
        halves: List::EMPTY,
        tiny: List::EMPTY,
        flats: List::EMPTY,
        links: List::EMPTY,
    }
}

proptest! {
    #[test]
    fn lists_are_read_by_the_stock_reader_and_ours(
        numbers in prop::collection::vec(any::<u64>(), 0..9),
        small in prop::collection::vec(any::<u16>(), 0..9),
        tiny in prop::collection::vec(any::<i8>(), 0..20),
        flats in prop::collection::vec(flat(), 0..5),
        names in prop::collection::vec((".{0,12}", flat(), prop::option::of(any::<u16>())), 0..5),
    ) {
        let links: Vec<_> = names.iter().map(|(name, inner, cap)| generated::Linked {
            name, inner: *inner, cap: cap.map(TransferIndex),
        }).collect();
        let value = generated::Lists {
            words: List::of(&numbers), halves: List::of(&small), tiny: List::of(&tiny),
            flats: List::of(&flats), links: List::of(&links),
        };
        let words = encode(&value);
        for less in (0..words.bytes().len()).step_by(8) {
            let mut short = Words::dirty(less);
            prop_assert_eq!(value.encode(short.bytes_mut()), Err(WireError::Full));
        }
        // Ours: what was written, and it can be sent on as it was received.
        let message = Message::new(words.bytes()).unwrap();
        let back = message.get::<generated::Lists<'_>>().unwrap();
        prop_assert_eq!(back.links.len(), links.len());
        prop_assert_eq!(back.words, value.words);
        prop_assert_eq!(back.halves, value.halves);
        prop_assert_eq!(back.tiny, value.tiny);
        prop_assert_eq!(back.flats, value.flats);
        let again = encode(&generated::Lists { links: List::EMPTY, ..back });
        let direct = encode(&generated::Lists { links: List::EMPTY, ..value });
        prop_assert_eq!(again.bytes(), direct.bytes());
        prop_assert_eq!(back.links, value.links, "text is read here, for the first time");
        prop_assert_eq!(back.links.get(links.len()), None);

        // The stock reader.
        let stock = Message::new(words.bytes()).unwrap();
        let root = stock.root::<lists::Reader<'_>>().unwrap();
        prop_assert!(root.get_words().unwrap().iter().eq(numbers.iter().copied()));
        prop_assert!(root.get_halves().unwrap().iter().eq(small.iter().copied()));
        prop_assert!(root.get_tiny().unwrap().iter().eq(tiny.iter().copied()));
        let read = root.get_flats().unwrap();
        prop_assert_eq!(read.len() as usize, flats.len());
        for (read, flat) in read.iter().zip(&flats) {
            prop_assert_eq!((read.get_a(), read.get_b(), read.get_c(), read.get_d()),
                (flat.a, Ok(flat.b), flat.c, flat.d));
        }
        for (read, (name, inner, _)) in root.get_links().unwrap().iter().zip(&names) {
            prop_assert_eq!(read.get_name().unwrap(), name.as_str());
            prop_assert_eq!(read.get_inner().unwrap().get_d(), inner.d);
        }
    }

    #[test]
    fn lists_are_written_as_the_stock_builder_does(
        numbers in prop::collection::vec(any::<u64>(), 1..9),
        small in prop::collection::vec(any::<u16>(), 1..9),
        flats in prop::collection::vec(flat(), 1..5),
    ) {
        let mut message = capnp::message::Builder::new_default();
        let mut root = message.init_root::<lists::Builder<'_>>();
        let mut to = root.reborrow().init_words(numbers.len() as u32);
        numbers.iter().enumerate().for_each(|(at, number)| to.set(at as u32, *number));
        let mut to = root.reborrow().init_halves(small.len() as u32);
        small.iter().enumerate().for_each(|(at, number)| to.set(at as u32, *number));
        let mut to = root.reborrow().init_flats(flats.len() as u32);
        flats.iter().enumerate().for_each(|(at, f)| stock_flat(to.reborrow().get(at as u32), *f));
        let value = generated::Lists {
            words: List::of(&numbers), halves: List::of(&small), flats: List::of(&flats), ..nothing()
        };
        let words = encode(&value);
        let segments = message.get_segments_for_output();
        prop_assert_eq!(words.bytes(), segments[0]);
    }
}

fn pointer(offset: u64, element: u64, count: u64) -> u64 {
    1 | offset << 2 | element << 32 | count << 35
}

fn tag(count: u64, data: u64, pointers: u64) -> u64 {
    count << 2 | data << 32 | pointers << 48
}

/// A message whose list number `at` has this pointer, followed by `rest`.
fn read<'w>(words: &'w mut Words, at: usize, list: u64, rest: &[u64]) -> Message<'w> {
    let mut all = vec![5_u64 << 48];
    all.extend((0..5).map(|position| if position == at { list } else { 0 }));
    all.extend(rest);
    *words = Words::of(&all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>());
    Message::new(words.bytes()).unwrap()
}

/// A list that claims more than the message has is refused as a whole, before anybody sees it,
/// also where its elements take no room.
#[test]
fn lists_that_claim_too_much_are_refused() {
    let most = 0x1fff_ffff;
    let mut words = Words::default();
    for (at, list, rest, why) in [
        (0, pointer(4, 5, 2), &[7][..], "a word too many"),
        (0, pointer(4, 5, most), &[7], "half a billion words"),
        (0, pointer(4, 0, most), &[], "half a billion nothings for words"),
        (0, pointer(4, 1, most), &[], "half a billion bits"),
        (0, pointer(4, 4, 2), &[7], "smaller elements than the schema's"),
        (0, pointer(4, 6, 1), &[0], "pointers for words"),
        (1, pointer(3, 3, 5), &[7], "five halves in one word"),
        (3, pointer(1, 7, 2), &[tag(2, 2, 0), 1, 2], "two structs in the room of one"),
        (3, pointer(1, 7, 2), &[tag(most, 0, 0), 1, 2], "half a billion empty structs"),
        (3, pointer(1, 7, most), &[tag(1, 2, 0), 1, 2], "a length beyond the message"),
        (3, pointer(1, 7, 2), &[1 | tag(1, 2, 0), 1, 2], "a tag that is no struct's"),
        (3, pointer(1, 0, most), &[], "half a billion nothings for structs"),
        (4, pointer(0, 7, 3), &[tag(1, 0, 3), pointer(3, 2, 9), 0, 0, 0], "a text beyond the end"),
        (4, pointer(0, 7, 3), &[tag(1, 0, 3), 0, 1 << 63, 0, 0], "a struct's pointers beyond it"),
        (4, pointer(0, 7, 3), &[tag(1, 0, 3), 0, 0, 2, 0], "a far pointer for a capability"),
    ] {
        let message = read(&mut words, at, list, rest);
        let refused = message.get::<generated::Lists<'_>>();
        assert_eq!(refused, Err(WireError::Malformed), "{why}");
    }
}

/// An element that cannot be read refuses the message, wherever in the list it is.
#[test]
fn every_element_is_checked_before_the_first_is_seen() {
    let mut words = Words::default();
    let good = [tag(2, 2, 0), 1, 2, 3 << 32, 4];
    let message = read(&mut words, 3, pointer(1, 7, 4), &good);
    let error = message.get::<generated::Lists<'_>>();
    assert_eq!(error, Err(WireError::UnknownEnumerant), "the second one's colour");
    let texts = [tag(2, 0, 3), pointer(5, 2, 2), 0, 0, pointer(3, 2, 2), 0, 0, 0x61, 0xff];
    let message = read(&mut words, 4, pointer(0, 7, 6), &texts);
    assert_eq!(message.get::<generated::Lists<'_>>(), Err(WireError::NotUtf8), "the second name");
}

/// Texts of all elements at one place: each costs as much as if it had its own, so a message
/// cannot make a reader look at more than it has.
#[test]
fn shared_text_does_not_multiply() {
    let mut words = Words::default();
    let element = |back: u64| [pointer(back, 2, 64), 0, 0];
    let mut rest = vec![tag(4, 0, 3)];
    rest.extend([element(11), element(8), element(5), element(2)].concat());
    rest.extend([0x6161_6161_6161_6161; 7]);
    rest.push(0x0061_6161_6161_6161);
    let message = read(&mut words, 4, pointer(0, 7, 12), &rest);
    assert_eq!(message.get::<generated::Lists<'_>>(), Err(WireError::Malformed));
}

/// Lists of a newer or older schema: elements with more or fewer words are read as far as they go.
#[test]
fn elements_of_another_version_are_read() {
    let mut words = Words::default();
    let longer = [tag(2, 3, 1), 1, 2, 99, 0, 3, 4, 99, 0];
    let message = read(&mut words, 3, pointer(1, 7, 8), &longer);
    let lists = message.get::<generated::Lists<'_>>().unwrap();
    let seen: Vec<_> = lists.flats.iter().map(|flat| flat.map(|flat| (flat.a, flat.d))).collect();
    assert_eq!(seen, [Ok((1, 2)), Ok((3, 4))]);
    let shorter = [tag(2, 1, 0), 1, 3];
    let message = read(&mut words, 3, pointer(1, 7, 2), &shorter);
    let lists = message.get::<generated::Lists<'_>>().unwrap();
    let seen: Vec<_> = lists.flats.iter().map(|flat| flat.map(|flat| (flat.a, flat.d))).collect();
    assert_eq!(seen, [Ok((1, 0)), Ok((3, 0))]);
}
