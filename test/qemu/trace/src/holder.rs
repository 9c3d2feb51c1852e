//! A process that may record, and does as it is told.

use abi_types::{CapSlot, Opcode, Sqe, SqeFlags, Status};
use capos_rt::io::status_of;
use capos_rt::{Env, Error, exit};
use schema::trace;
use schema_wire::CallError;

/// Starts with the categories in its payload.
pub const START: u16 = 1;
/// Stops.
pub const STOP: u16 = 2;
/// Ends the process, without an answer.
pub const END: u16 = 3;
/// Makes as many marks as its payload says.
pub const MARKS: u16 = 4;

/// What is answered if a call was: else one more than the kind of its exception.
pub const DONE: u64 = 0;

fn told<V>(result: Result<V, CallError>) -> u64 {
    match result {
        Ok(_) => DONE,
        Err(CallError::Exception(said)) => 1 + said.kind() as u64,
        Err(_) => u64::MAX,
    }
}

/// Serves calls to the end.
pub fn serve(env: &Env, requests: CapSlot) -> Result<(), Error> {
    let own = env.cap("trace", trace::INTERFACE_ID)?;
    let cap = requests.to_bits();
    let mut words = [0; 16];
    let recv = Sqe { opcode: Opcode::Recv as u8, cap, ..Sqe::default() };
    let mut cqe = env.io.run(recv, &[], &mut words)?;
    loop {
        if status_of(&cqe) != Status::Ok {
            return Err(status_of(&cqe).into());
        }
        let mut client = trace::Client::new(env.io.caller(), own);
        let answer = match cqe.method {
            START => told(client.start(words[0] as u32)),
            STOP => told(client.stop()),
            END => exit(0),
            MARKS => (0..words[0]).map(|value| told(client.mark(value))).max().unwrap_or(DONE),
            _ => u64::MAX,
        };
        let sqe = Sqe {
            opcode: Opcode::Return as u8,
            flags: SqeFlags::THEN_RECV,
            cap,
            arg: cqe.token,
            length: 8,
            ..Sqe::default()
        };
        cqe = env.io.run(sqe, &[answer], &mut words)?;
    }
}
