//! The healthy process: calls its peer and checks every answer while others misbehave.
//!
//! What a run proves, and what it detects:
//!
//! - each call to the healthy peer is answered once, with what was sent;
//! - careful vandals, which cannot harm themselves, find every lie without effect and every kernel call
//!   through a sound ring of theirs answered; they live to the end, and do as many operations as the
//!   run's goal; the kernel has counted at least as many entries as they claim;
//! - reckless vandals end, each seen by a call to it that ends as `disconnected`, and each gives back
//!   the same memory, whatever it did before;
//! - the kernel takes no fault: it would end the run.
//!
//! The seed is a figure of the run.
#![no_std]
#![no_main]

mod watch;

use abi_types::CapSlot;
use capos_rt::Env;
use hostile_protocol::{CAREFUL, RECKLESS};
use schema::system_info;
use test_kit::{Outcome, Suite, T, Test, check, check_eq, require_ok};
use test_ring::borrow;
use watch::Watch;

capos_rt::main!(main);

const SUITE: Suite<Watch> = Suite::new(&[
    Test::new("hostile.others_are_served", others_are_served),
    Test::new("hostile.lies_gain_nothing", lies_gain_nothing),
    Test::new("hostile.the_reckless_end", the_reckless_end),
    Test::new("hostile.the_kernel_is_whole", the_kernel_is_whole),
]);

fn main(env: &'static Env) {
    test_user::run_with(env, &SUITE, &mut Watch::new(env))
}

fn cap(env: &Env, name: &str) -> CapSlot {
    env.caps.named(name).unwrap_or(CapSlot::NONE)
}

fn others_are_served(t: &mut T<'_, Watch>) -> Outcome {
    let watch = &mut *t.env;
    let log = borrow(&watch.env.io, |ring| watch.run(ring));
    log.tell(t);
    t.metric("seed", t.env.seed, "");
    t.metric("operations", t.env.operations(), "operations");
    t.metric("healthy calls", t.env.served, "calls");
    check!(t, t.env.operations() >= t.env.goal, "{} operations", t.env.operations());
    Ok(())
}

fn lies_gain_nothing(t: &mut T<'_, Watch>) -> Outcome {
    for vandal in 0..CAREFUL {
        let news = t.env.news[vandal];
        check!(t, news.operations > 0, "vandal {vandal} did nothing");
        let wrong = (news.lies, news.syscalls, news.calls);
        check!(t, wrong == (0, 0, 0), "vandal {vandal}: {news:?}");
        check!(t, !t.env.has_ended(vandal), "vandal {vandal} ended");
    }
    Ok(())
}

fn the_reckless_end(t: &mut T<'_, Watch>) -> Outcome {
    let ended = (CAREFUL..CAREFUL + RECKLESS).filter(|&vandal| t.env.has_ended(vandal)).count();
    t.metric("reckless vandals that ended", ended as u64, "processes");
    t.metric("left alone", t.env.left_alone as u64, "processes");
    // One that spoiled its own way out is left alone; they are few.
    check!(t, ended >= RECKLESS / 2, "{ended} of {RECKLESS}");
    if let Some(back) = t.env.given_back {
        t.metric("frames given back by each", back, "frames");
        check!(t, back > 100 && back < 1 << 20, "{back} frames");
    }
    let unequal = t.env.unequal;
    check_eq!(t, unequal, None);
    Ok(())
}

fn the_kernel_is_whole(t: &mut T<'_, Watch>) -> Outcome {
    let env = t.env.env;
    let mut info = system_info::Client::new(env.io.large(), cap(env, "info"));
    let machine = require_ok!(t, info.machine()).machine;
    check!(t, machine.frames_free > machine.frames_total / 4, "{machine:?}");
    let mut counted = 0;
    for cpu in 0..machine.cpus {
        counted += require_ok!(t, info.cpu(cpu)).counters.syscalls;
    }
    let claimed: u64 = t.env.news.iter().map(|news| news.entries).sum();
    t.metric("entries of the careful", claimed, "syscalls");
    t.metric("entries counted", counted, "syscalls");
    // The witness's own, one for each call, come on top.
    check!(t, counted >= claimed + t.env.served, "{counted} counted, {claimed} claimed");
    Ok(())
}
