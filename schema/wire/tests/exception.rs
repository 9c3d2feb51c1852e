//! Exceptions: written, read back, cut to length, and read from bytes that are none.
use schema_wire::{EXCEPTION_BYTES, EXCEPTION_MESSAGE_BYTES, Exception, ExceptionKind, WireError};
use test_property::prelude::*;

const KINDS: [ExceptionKind; 5] = [
    ExceptionKind::Failed,
    ExceptionKind::Overloaded,
    ExceptionKind::Disconnected,
    ExceptionKind::Unimplemented,
    ExceptionKind::InvalidArgument,
];

#[repr(align(8))]
struct Aligned([u8; 256]);

proptest! {
    #[test]
    fn survives_its_wire_form(kind in 0usize..5, message in ".{0,60}") {
        let exception = Exception::new(KINDS[kind], &message);
        let mut bytes = Aligned([0xa5; 256]);
        let length = exception.encode(&mut bytes.0).unwrap();
        prop_assert!(length <= EXCEPTION_BYTES);
        let back = Exception::decode(&bytes.0[..length]).unwrap();
        prop_assert_eq!(back, exception);
        prop_assert!(message.starts_with(back.message()));
        // Cut only if it has to be, and then by less than one character.
        prop_assert!(back.message().len() == message.len() || back.message().len() > EXCEPTION_MESSAGE_BYTES - 4);
        for less in 0..length {
            prop_assert_eq!(exception.encode(&mut bytes.0[..less]), Err(WireError::Full));
        }
    }

    #[test]
    fn random_bytes_are_refused_or_read(random in prop::collection::vec(any::<u64>(), 0..8)) {
        let mut bytes = Aligned([0; 256]);
        for (to, word) in bytes.0.chunks_mut(8).zip(&random) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        let _ = Exception::decode(&bytes.0[..random.len() * 8]);
    }
}

#[test]
fn an_unknown_kind_still_says_no() {
    let mut bytes = Aligned([0; 256]);
    let length = Exception::new(ExceptionKind::Overloaded, "full").encode(&mut bytes.0).unwrap();
    bytes.0[8] = 77;
    let exception = Exception::decode(&bytes.0[..length]).unwrap();
    assert_eq!(exception.kind(), ExceptionKind::Failed);
    assert_eq!(exception.to_string(), "failed: full");
}

#[test]
fn long_messages_are_cut_between_characters() {
    let exception = Exception::new(ExceptionKind::Failed, &"ä".repeat(60));
    assert_eq!(exception.message(), "ä".repeat(47));
    let exception =
        Exception::with(ExceptionKind::Failed, format_args!("{:>90}{}", "x", "yz".repeat(9)));
    assert_eq!(exception.message().len(), EXCEPTION_MESSAGE_BYTES);
    assert!(exception.message().ends_with("xyzyzy"));
}
