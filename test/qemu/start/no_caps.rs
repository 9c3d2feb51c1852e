//! A process without capabilities looks at how it was started; its exit code says what is wrong.
#![no_std]
#![no_main]

use capos_rt::Env;
use test_bare::entry;

capos_rt::main!(main);

fn main(env: &Env) -> i64 {
    let found = entry::first();
    if found.is_written != 1 || found.high[0] != 0 {
        return 1;
    }
    if env.caps.find("console", schema::console::INTERFACE_ID).is_ok() {
        return 2;
    }
    // Slots by guess lead nowhere.
    for index in 0..64 {
        for generation in 0..4 {
            let slot = abi_types::CapSlot::new(index, generation);
            if env.io.release(slot) != Err(abi_types::Status::Disconnected) {
                return 3;
            }
        }
    }
    0
}
