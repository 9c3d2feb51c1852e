//! Every shape of message: against the stock builder and reader, and with bad buffers.
use probe::probe as generated;
use probe::probe_capnp::{Colour, numbers, probe as stock};
use schema_testing::{Loopback, Words};
use schema_wire::{
    Answer, CallError, CapSlot, Encode, List, Message, Status, Transfer, TransferIndex, WireError,
};
use test_property::prelude::*;

struct Mirror<'a> {
    first: Option<generated::Texts<'a>>,
    text: String,
    bytes: Vec<u8>,
    words: Vec<u64>,
    flats: Vec<generated::Flat>,
    seen: String,
}

impl generated::Server for Mirror<'_> {
    fn numbers(&mut self, params: generated::Numbers) -> Answer<generated::NumbersResults> {
        Ok(generated::NumbersResults { numbers: params })
    }

    fn texts(
        &mut self,
        params: generated::TextsParams<'_>,
        _room: usize,
    ) -> Answer<generated::TextsResults<'_>> {
        self.text = params.first.name.to_owned();
        self.bytes = params.second.bytes.to_owned();
        let first =
            generated::Texts { name: &self.text, bytes: &self.bytes, type_: params.first.type_ };
        let second = generated::Texts { name: "", bytes: &[], type_: params.second.type_ };
        Ok(generated::TextsResults { first: self.first.unwrap_or(first), second })
    }

    fn transfers(
        &mut self,
        params: generated::TransfersParams,
    ) -> Answer<generated::TransfersResults> {
        Ok(generated::TransfersResults { one: params.two, two: params.one })
    }

    fn deep(&mut self, params: generated::DeepParams) -> Answer<generated::DeepResults> {
        Ok(generated::DeepResults { value: params.deep.next.next.next.next.next.next.value })
    }

    fn too_deep(&mut self, params: generated::TooDeepParams) -> Answer<generated::TooDeepResults> {
        Ok(generated::TooDeepResults { value: params.deep.value })
    }

    fn nothing(&mut self) -> Answer<()> {
        Ok(())
    }

    fn lists(
        &mut self,
        params: generated::Lists<'_>,
        _room: usize,
    ) -> Answer<generated::ListsResults<'_>> {
        self.seen = format!("{params:?}");
        self.words = params.words.iter().map(Result::unwrap).collect();
        self.flats = params.flats.iter().map(Result::unwrap).collect();
        let lists = generated::Lists {
            words: List::of(&self.words),
            halves: List::EMPTY,
            tiny: List::EMPTY,
            flats: List::of(&self.flats),
            links: List::EMPTY,
        };
        Ok(generated::ListsResults { lists, last: self.words.last().copied().unwrap_or(0) })
    }
}

fn mirror() -> Mirror<'static> {
    Mirror {
        first: None,
        text: String::new(),
        bytes: Vec::new(),
        words: Vec::new(),
        flats: Vec::new(),
        seen: String::new(),
    }
}

macro_rules! client {
    ($server:expr) => {
        generated::Client::new(
            Loopback::new(|method, params, results| {
                generated::dispatch(&mut $server, method, params, results)
            }),
            CapSlot::new(1, 1),
        )
    };
}

fn numbers() -> impl Strategy<Value = generated::Numbers> {
    (
        (any::<bool>(), any::<i8>(), any::<i16>(), any::<i32>(), any::<i64>()),
        (any::<bool>(), any::<u8>(), any::<u16>(), any::<u32>(), any::<u64>(), 0u16..3),
    )
        .prop_map(
            |((flag, tiny, small, middle, large), (flag_on, byte, half, word, double, colour))| {
                let colour = Colour::try_from(colour).unwrap();
                generated::Numbers {
                    flag,
                    tiny,
                    small,
                    middle,
                    large,
                    flag_on,
                    byte,
                    half,
                    word,
                    double,
                    colour,
                }
            },
        )
}

/// The segment of a message the stock builder wrote.
fn segment(message: &capnp::message::Builder<capnp::message::HeapAllocator>) -> Vec<u8> {
    message.get_segments_for_output()[0].to_vec()
}

proptest! {
    #[test]
    fn numbers_are_written_as_the_stock_builder_does(value in numbers()) {
        let mut message = capnp::message::Builder::new_default();
        let mut root = message.init_root::<numbers::Builder>();
        root.set_flag(value.flag);
        root.set_tiny(value.tiny);
        root.set_small(value.small);
        root.set_middle(value.middle);
        root.set_large(value.large);
        root.set_flag_on(value.flag_on);
        root.set_byte(value.byte);
        root.set_half(value.half);
        root.set_word(value.word);
        root.set_double(value.double);
        root.set_colour(value.colour);
        let mut words = Words::dirty(value.message_bytes());
        let length = value.encode(words.bytes_mut()).unwrap();
        prop_assert_eq!(&words.bytes()[..length], segment(&message));
        prop_assert_eq!(Message::new(words.bytes()).unwrap().get::<generated::Numbers>().unwrap(), value);
        let mut server = mirror();
        let mut client = client!(server);
        let n = value;
        let answer = client.numbers(
            n.flag, n.tiny, n.small, n.middle, n.large, n.flag_on, n.byte, n.half, n.word, n.double, n.colour,
        );
        prop_assert_eq!(answer.unwrap().numbers, value);
    }

    #[test]
    fn texts_are_written_as_the_stock_builder_does(name in ".{0,40}", data in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut message = capnp::message::Builder::new_default();
        let mut root = message.init_root::<stock::texts_params::Builder>();
        let mut first = root.reborrow().init_first();
        first.set_name(name.as_str());
        first.set_bytes(&[]);
        first.set_type(Colour::Blue);
        root.reborrow().init_empty();
        let mut second = root.init_second();
        second.set_name("");
        second.set_bytes(&data);
        let params = generated::TextsParams {
            first: generated::Texts { name: &name, bytes: &[], type_: Colour::Blue },
            empty: generated::Empty {},
            second: generated::Texts { name: "", bytes: &data, type_: Colour::Red },
        };
        let size = params.message_bytes();
        let mut words = Words::dirty(size);
        prop_assert_eq!(params.encode(words.bytes_mut()), Ok(size));
        prop_assert_eq!(words.bytes(), segment(&message));
        // Any smaller buffer is too small, and is told so.
        for less in 0..size {
            prop_assert_eq!(params.encode(&mut Words::dirty(size).bytes_mut()[..less]), Err(WireError::Full));
        }
        let mut server = mirror();
        let mut client = client!(server);
        let reading = client.texts(params.first, params.empty, params.second).unwrap();
        let results = reading.get().unwrap();
        prop_assert_eq!(results.first, generated::Texts { name: &name, bytes: &data, type_: Colour::Blue });
        prop_assert_eq!(results.second, generated::Texts { name: "", bytes: &[], type_: Colour::Red });
    }

    #[test]
    fn capabilities_are_positions(one in prop::option::of(any::<u16>()), two in prop::option::of(any::<u16>()), number in any::<u32>()) {
        let (one, two) = (one.map(TransferIndex), two.map(TransferIndex));
        let mut server = mirror();
        let mut client = client!(server);
        let sent = [Transfer { slot: CapSlot::new(9, 2), is_move: true }];
        let reading = client.transfers(one, number, two, &sent).unwrap();
        prop_assert_eq!(reading.get().unwrap(), generated::TransfersResults { one: two, two: one });
        prop_assert_eq!(reading.transfers(), &[]);
    }
}

#[test]
fn a_pointer_that_is_no_capability_where_one_belongs() {
    let params = generated::TransfersParams { one: Some(TransferIndex(1)), number: 0, two: None };
    let mut words = Words::dirty(params.message_bytes());
    params.encode(words.bytes_mut()).unwrap();
    // Words: root, number, one, two.
    for bad in [1u64, 2, 4, 7, 3 | 0x1_0000 << 32, 3 | 1 << 31] {
        words.bytes_mut()[24..32].copy_from_slice(&bad.to_le_bytes());
        let message = Message::new(words.bytes()).unwrap();
        assert_eq!(
            message.get::<generated::TransfersParams>(),
            Err(WireError::Malformed),
            "{bad:#x}"
        );
    }
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let texts = generated::Texts { name: "abcdefg", bytes: &[], type_: Colour::Red };
    let mut words = Words::dirty(texts.message_bytes());
    let length = texts.encode(words.bytes_mut()).unwrap();
    words.bytes_mut()[length - 8] = 0xff;
    let message = Message::new(words.bytes()).unwrap();
    assert_eq!(message.get::<generated::Texts<'_>>(), Err(WireError::NotUtf8));
    // Nor is text without its final zero.
    words.bytes_mut()[length - 8] = b'a';
    words.bytes_mut()[length - 1] = b'h';
    let message = Message::new(words.bytes()).unwrap();
    assert_eq!(message.get::<generated::Texts<'_>>(), Err(WireError::Malformed));
}

#[test]
fn messages_nest_eight_deep_and_no_deeper() {
    // The parameters, then Deep3 to Deep9.
    let mut message = capnp::message::Builder::new_default();
    let deep = message.init_root::<stock::deep_params::Builder>().init_deep();
    deep.init_next().init_next().init_next().init_next().init_next().init_next().set_value(99);
    let words = Words::of(&segment(&message));
    let params = Message::new(words.bytes()).unwrap();
    let params = params.get::<generated::DeepParams>().unwrap();
    let mut server = mirror();
    assert_eq!(client!(server).deep(params.deep).unwrap().value, 99);

    // One more, before them.
    let mut message = capnp::message::Builder::new_default();
    let deep = message.init_root::<stock::too_deep_params::Builder>().init_deep();
    deep.init_next().init_next().init_next().init_next().init_next().init_next().init_next();
    let words = Words::of(&segment(&message));
    let served = generated::dispatch(&mut mirror(), 4, words.bytes(), &mut [0; 128]);
    assert_eq!(served, Err(Status::InvalidArgument));
}

#[test]
fn nothing_is_an_empty_message() {
    assert_eq!(generated::NothingParams {}.message_bytes(), 0);
    assert_eq!(generated::NothingParams {}.encode(&mut []), Ok(0));
    let mut server = mirror();
    client!(server).nothing().unwrap();
    // Fields that are not there have their defaults.
    let defaults = Message::new(&[]).unwrap().get::<generated::Numbers>().unwrap();
    assert_eq!((defaults.small, defaults.large, defaults.colour), (-7, -1, Colour::Green));
    assert!(defaults.flag_on && !defaults.flag);
}

#[test]
fn a_server_that_answers_too_much_is_told_so() {
    let long = vec![b'x'; 5000];
    let first = generated::Texts { name: "", bytes: &long, type_: Colour::Red };
    let mut server = Mirror { first: Some(first), ..mirror() };
    let mut client = client!(server);
    let texts = generated::Texts { name: "", bytes: &[], type_: Colour::Red };
    let result = client.texts(texts, generated::Empty {}, texts).map(|_| ());
    assert_eq!(result, Err(CallError::Status(Status::ResultTooLarge)));
}
