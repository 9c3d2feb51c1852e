//! Fuzzes the dispatch of every interface: byte 0 the interface, byte 1 the method, byte 2 how
//! much the caller can take in words, the rest the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use schema::INTERFACES;
use schema_testing::{Everything, Words, serve};
use schema_wire::{Exception, Served};

fuzz_target!(|input: &[u8]| {
    let [interface, method, room, message @ ..] = input else { return };
    let interface = INTERFACES[usize::from(*interface) % INTERFACES.len()];
    let words = Words::of(message);
    let mut server = Everything { input: vec![1; 300], ..Everything::default() };
    let mut results = Words::dirty(usize::from(*room) * 8);
    let message = &words.bytes()[..message.len()];
    let method = u16::from(*method);
    match serve(&mut server, interface.name, method, message, results.bytes_mut()).unwrap() {
        Ok(Served::Results(length)) => assert!(length <= results.bytes().len()),
        Ok(Served::Exception(length)) => {
            Exception::decode(&results.bytes()[..length]).unwrap();
        }
        Ok(Served::Later) => {}
        Err(_) => assert!(server.asked.is_empty()),
    }
});
