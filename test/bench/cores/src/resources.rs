//! Accounts, address spaces, flushes, locks, the trace.

use core_ledger::{Frames, Ledger, Profile};
use core_tlb::{Resident, Residents, Shootdown};
use core_vm::{Access, PageRange, Region, Regions};
use smp_lock::TicketLock;
use smp_trace::{Buffer, Control, Record};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;

use crate::Bench;

/// Times each.
pub fn run(bench: &Bench) {
    ledger(bench);
    vm(bench);
    tlb(bench);
    let lock = TicketLock::new(0_u64);
    bench.run("lock: take and give back, free", |n| *lock.lock() += n);
    trace(bench);
}

fn ledger(bench: &Bench) {
    let profile = Profile { frames: 1 << 20, ..Profile::NONE };
    let ledger = Ledger::new(&profile);
    bench.run("ledger: reserve, commit, release", |n| {
        let reserved = ledger.reserve(Frames, (n % 8) as u32).unwrap();
        black_box(reserved.commit()).release();
    });
    bench.run("ledger: refused", |_| {
        black_box(ledger.reserve(Frames, 1 << 21).is_err());
    });
    let child = Profile { frames: 16, ..Profile::NONE };
    bench.run("ledger: lend five lines and give them back", |_| {
        black_box(ledger.lend(&profile, &child).unwrap()).give_back();
    });
}

fn vm(bench: &Bench) {
    for regions in [4_u64, 64, 512] {
        let mut list = Regions::new(vec![Region::UNUSED; regions as usize + 6]).unwrap();
        // Every second page, so that none joins its neighbour.
        for n in 0..regions {
            let range = PageRange::from_page(100 + 2 * n, 1).unwrap();
            let _ = list.map_own(range, Access::Read).unwrap();
            list.settle(range, |_| {});
        }
        let middle = PageRange::from_page(100 + regions, 1).unwrap();
        let free = PageRange::from_page(101 + regions, 1).unwrap();
        bench.run(&format!("vm: find a page among {regions} regions"), |n| {
            black_box(list.find(100 + n % (2 * regions)));
        });
        bench.run(&format!("vm: map and unmap a page among {regions} regions"), |_| {
            let _ = black_box(list.map_own(free, Access::Write).unwrap());
            list.settle(free, |_| {});
            list.unmap(free, None).unwrap();
            list.settle(free, |_| {});
        });
        bench.run(&format!("vm: protect a page among {regions} regions, twice"), |_| {
            for access in [Access::Write, Access::Read] {
                list.protect(middle, access, None).unwrap();
                list.settle(middle, |_| {});
            }
        });
        bench.run(&format!("vm: find two free pages past {regions} regions"), |_| {
            let _ = black_box(list.find_free(2, 100 * 4096).unwrap());
        });
    }
}

fn tlb(bench: &Bench) {
    let shootdown = Shootdown::<128>::new(8);
    let residents = Residents::new();
    bench.run("tlb: request nobody has to answer", |_| {
        let posted = shootdown.begin().unwrap().post(&residents, 0);
        black_box(posted.token.finish(&shootdown).is_ok());
    });
    for cpu in 1..4 {
        residents.enter(Resident::of(cpu));
    }
    bench.run("tlb: request to three CPUs, and their answers", |_| {
        let posted = shootdown.begin().unwrap().post(&residents, 0);
        for cpu in 1..4 {
            shootdown.drain(cpu, || ());
        }
        black_box(posted.token.finish(&shootdown).is_ok());
    });
    bench.run("tlb: look for requests on the way out", |_| {
        black_box(shootdown.is_pending(1));
    });
}

fn trace(bench: &Bench) {
    let control = Control::new();
    let buffer = Buffer::new((0..4096).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    bench.run("trace: a point that is off", |n| {
        if control.is_on(1) {
            buffer.record(control.session(), &Record { a: n, ..Record::default() });
        }
    });
    bench.run("trace: a record", |n| {
        // A session of one buffer at a time, so that none is dropped.
        if n % 1024 == 0 {
            control.start(1);
        }
        buffer.record(control.session(), &Record { a: n, ..Record::default() });
    });
}
