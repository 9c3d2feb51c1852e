//! Shows what each key sends: every byte, until Ctrl-D.
#![no_std]
#![no_main]

use capos_rt::{Env, Error, println};
use schema::console;

capos_rt::main!(main);

const CTRL_D: u8 = 4;

fn main(env: &Env) -> Result<(), Error> {
    println!(env, "keys: press some; Ctrl-D ends");
    let mut console =
        console::Client::new(env.io.caller(), env.cap("console", console::INTERFACE_ID)?);
    loop {
        let reading = console.read(8)?;
        for byte in reading.get()?.bytes {
            match byte {
                &CTRL_D => return Ok(()),
                b' '..=b'~' => println!(env, "  {byte:#04x}  {}", char::from(*byte)),
                _ => println!(env, "  {byte:#04x}"),
            }
        }
    }
}
