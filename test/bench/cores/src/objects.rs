//! Capabilities, calls, waiting threads, deadlines.

use abi_types::InterfaceTag;
use core_cap::{Cap, GrantEntry, Grants, Mode, Request, Slot, Table};
use core_endpoint::{Call, CallVerdict, Endpoint, Limits, Record, Service};
use core_park::{Bucket, Key, Waiter};
use core_thread::{Lifecycle, State, StateWord, ThreadKey, Ticket, WaitVerdict, Word};
use smp_timer::{Deadlines, Owner, Timers};
use std::hint::black_box;

use crate::Bench;

/// Any interface: the table only keeps it.
const TAG: InterfaceTag = InterfaceTag::of(1).unwrap();

/// Times each.
pub fn run(bench: &Bench) {
    cap(bench);
    endpoint(bench);
    park(bench);
    timer(bench);
    bench.run("thread: create, exit, release", |n| {
        let mut life = Lifecycle::new(ThreadKey { slot: n as u32, generation: 1 });
        let _ = black_box(life.exit(0).unwrap());
        let _ = black_box(life.release_handle().unwrap());
    });
    thread(bench);
}

fn thread(bench: &Bench) {
    let running = Word::compose(State::Running, 1, Ticket::new(0), false, false);
    let word = StateWord::starting_at(running);
    bench.run("thread: about to wait, and not", |_| {
        let _ = black_box(word.begin_wait().unwrap());
        let _ = black_box(word.cancel_wait().unwrap());
    });
    bench.run("thread: wait, wake, run", |_| {
        let Ok(WaitVerdict::AboutToWait(ticket)) = word.begin_wait() else { panic!("it runs") };
        let _ = black_box(word.commit_wait().unwrap());
        let _ = black_box(word.wake(1, ticket).unwrap());
        let _ = black_box(word.dispatch(1).unwrap());
    });
    bench.run("thread: preempted and run", |_| {
        let _ = black_box(word.requeue().unwrap());
        let _ = black_box(word.dispatch(1).unwrap());
    });
}

fn cap(bench: &Bench) {
    let mut table = Table::new(vec![Slot::UNUSED; 64], 64).unwrap();
    let mut other = Table::new(vec![Slot::UNUSED; 64], 64).unwrap();
    let grants = Grants::new((0..4).map(|_| GrantEntry::default()).collect::<Vec<_>>());
    let slot = table.insert(Cap::new(7_u32, TAG)).unwrap();
    bench.run("cap: look up", |_| {
        let _ = black_box(table.lookup(black_box(slot), &grants));
    });
    bench.run("cap: insert and release", |_| {
        let slot = table.insert(Cap::new(8, TAG)).unwrap();
        let _ = black_box(table.release(slot).unwrap());
    });
    bench.run("cap: transfer a copy to another table, and release it", |_| {
        let list = [Request { slot, mode: Mode::Copy }];
        let parcel = table.prepare(&list, |grant| grants.is_live(grant), |_, _| true).unwrap();
        let promised = other.reserve(1).unwrap();
        table.depart(&parcel).unwrap();
        let arrived = other.arrive(promised, parcel).unwrap();
        table.settle(&parcel);
        let _ = black_box(other.release(arrived.slots()[0]).unwrap());
    });
}

fn endpoint(bench: &Bench) {
    let mut service: Service<u32, u32, _, _> =
        Service::new(vec![Record::UNUSED; 32], vec![Endpoint::UNUSED; 2]);
    let on = service.open(Limits { queued: 8, in_flight: 8 }).unwrap();
    bench.run("endpoint: receive, call, reply", |n| {
        let _ = black_box(service.recv(on, 1, 0, |_| ()).unwrap());
        let call = Call { caller: n as u32, badge: 0, deadline_ns: 0 };
        let Ok(CallVerdict::Deliver { token, .. }) = service.call(on, call, 0) else {
            panic!("a receiver waits")
        };
        let _ = black_box(service.reply(token).unwrap());
    });
}

fn park(bench: &Bench) {
    for threads in [1_u32, 1000] {
        let waiters: Vec<Waiter> = (0..threads + 1).map(|_| Waiter::new()).collect();
        let mut bucket = Bucket::new(0);
        for who in 0..threads {
            let key = Key::private(1, u64::from(who) * 4);
            let _ = bucket.park(&waiters, who, key, None, 0, |_| Ok::<_, ()>(true)).unwrap();
        }
        let key = Key::private(2, 0);
        bench.run(&format!("park: park and unpark beside {threads} in the bucket"), |_| {
            let _ = black_box(
                bucket.park(&waiters, threads, key, None, 0, |_| Ok::<_, ()>(true)).unwrap(),
            );
            let _ = black_box(bucket.unpark(&waiters, key, 1, |woken| _ = black_box(woken)));
        });
    }
}

fn timer(bench: &Bench) {
    for armed in [10_u32, 10_000] {
        let timers = Timers::new(armed + 1).unwrap();
        let deadlines = Deadlines::new(0);
        let owner = |number| Owner { thread: 1, number, arming: 0 };
        let arm = |number, deadline_ns| {
            let timer = timers.get(number).unwrap();
            deadlines.arm(timer, owner(number), deadline_ns).unwrap()
        };
        for number in 0..armed {
            let deadline_ns = 1 + u64::from(number.wrapping_mul(2_654_435_761));
            let _ = arm(number, deadline_ns);
        }
        let last = timers.get(armed).unwrap();
        bench.run(&format!("timer: arm and cancel beside {armed}"), |n| {
            let _ = black_box(arm(armed, n << 16));
            assert!(last.stop(|_| Some(&deadlines)));
        });
        bench.run(&format!("timer: arm the nearest and expire it beside {armed}"), |_| {
            let _ = black_box(arm(armed, 0));
            let _ = black_box(deadlines.pop_expired(0));
        });
    }
}
