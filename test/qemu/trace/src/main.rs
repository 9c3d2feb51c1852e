//! The kernel's trace as programs see it: what is recorded, what it costs, and whose it is.
//!
//! * [`records`]: events, read page by page. [`holder`]: the processes that may record as well.
//! * [`events`]: each category, exact counts, a full buffer. [`owners`]: two that want it, and their ends.
#![no_std]
#![no_main]

mod events;
mod holder;
mod owners;
mod records;

use abi_types::{CapSlot, Status};
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::{Env, Error};
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, T, Test};

capos_rt::main!(main);

/// What the tests share.
pub struct Shared {
    /// The program.
    pub program: Program,
    /// A Trace.
    pub trace: CapSlot,
    /// A server that answers with what it got.
    pub echo: CapSlot,
}

/// A test.
pub type Run<'a> = T<'a, Shared>;

impl Shared {
    /// A capability of the manifest's.
    pub fn named(&self, name: &str) -> CapSlot {
        self.program.env.caps.named(name).unwrap_or(CapSlot::NONE)
    }

    /// Calls the server; how it ended.
    pub fn call_echo(&self) -> Status {
        let called = self.program.io().run(call(self.echo, PLAIN, 0, 8), &[1], &mut [0; 16]);
        called.map_or_else(|status| status, |cqe| status_of(&cqe))
    }
}

static SIBLINGS: [Sibling; 2] = [const { Sibling::new() }; 2];

const SUITE: Suite<Shared> = Suite::new(&[
    Test::new("trace.off_at_first", events::off_at_first),
    Test::new("trace.off_costs_nothing", events::off_costs_nothing),
    Test::new("trace.wrong_arguments", events::wrong_arguments),
    Test::new("trace.each_category", events::each_category),
    Test::new("trace.only_what_was_asked_for", events::only_what_was_asked_for),
    Test::new("trace.switches_are_exact", events::switches),
    Test::new("trace.call_in_its_order", events::call_in_its_order),
    Test::new("trace.full_buffer", events::full_buffer),
    Test::new("trace.another_records", owners::another_records),
    Test::new("trace.taken_over", owners::taken_over),
    Test::new("trace.too_poor", owners::too_poor),
    Test::new("trace.end_while_recording", owners::end_while_recording),
    Test::new("trace.flood_of_marks", owners::flood_of_marks),
    // The capability is gone after this.
    Test::new("trace.released", owners::released),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    if let Ok(requests) = env.cap("holder", schema::endpoint::INTERFACE_ID) {
        return holder::serve(env, requests);
    }
    let program = Program::new(env, &SIBLINGS)?;
    let trace = env.cap("trace", schema::trace::INTERFACE_ID)?;
    let echo = env.caps.named("echo").unwrap_or(CapSlot::NONE);
    test_user::run_with(env, &SUITE, &mut Shared { program, trace, echo })
}
