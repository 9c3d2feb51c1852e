//! A request to flush meets a CPU that enters a space, returns to user mode or answers another
//! request: what was taken away is not reused while it can be used, and no request is left.
//!
//! The page table is a relaxed word and the frame is plain data: what orders them is the protocol
//! under test and nothing else. An interrupt is latched and delivered when the threads are done.

use abi_sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use abi_sync::{Arc, CheckedCell, thread};
use core_tlb::{Resident, Residents, Shootdown};

const TARGET: usize = 0;
const OTHER: usize = 1;

struct World {
    shootdown: Shootdown<2>,
    residents: Residents,
    /// Whether the page is mapped.
    table: AtomicU64,
    frame: CheckedCell<u32>,
    latched: AtomicBool,
}

impl World {
    fn new() -> Self {
        Self {
            shootdown: Shootdown::new(4),
            residents: Residents::new(),
            table: AtomicU64::new(1),
            frame: CheckedCell::new(0),
            latched: AtomicBool::new(false),
        }
    }

    /// Takes the page away and reuses its frame if the request is over already. Otherwise gives
    /// back the token.
    fn unmap(&self, look_first: bool) -> Option<core_tlb::Token> {
        let permit = self.shootdown.begin().unwrap();
        let posted = if look_first {
            let posted = permit.post(&self.residents, OTHER);
            self.table.store(0, Ordering::Relaxed);
            posted
        } else {
            self.table.store(0, Ordering::Relaxed);
            permit.post(&self.residents, OTHER)
        };
        if posted.interrupt.contains(TARGET) {
            self.latched.store(true, Ordering::Relaxed);
        }
        match posted.token.finish(&self.shootdown) {
            Ok(()) => {
                self.frame.update(|frame| *frame += 1);
                None
            }
            Err(token) => Some(token),
        }
    }

    /// Looks at its requests on the way to user mode, then uses what it has cached.
    fn return_to_user(&self, cached: &mut bool) {
        self.shootdown.drain(TARGET, || *cached = false);
        // The page is touched: from the cache, or walked.
        *cached = *cached || self.table.load(Ordering::Relaxed) == 1;
        if *cached {
            let _ = self.frame.get();
        }
    }
}

fn unmap_meets_a_cpu_that_enters(look_first: bool) {
    abi_sync::model(move || {
        let world = Arc::new(World::new());
        let target = world.clone();
        let t = thread::spawn(move || {
            target.residents.enter(Resident::of(TARGET));
            let mut cached = target.table.load(Ordering::Relaxed) == 1;
            target.return_to_user(&mut cached);
            cached
        });
        let token = world.unmap(look_first);
        let mut cached = t.join().unwrap();
        if world.latched.load(Ordering::Relaxed) {
            world.shootdown.drain(TARGET, || cached = false);
        }
        if let Some(token) = token {
            assert!(token.finish(&world.shootdown).is_ok(), "a request is never answered");
        }
        assert!(!cached, "a translation outlives its request");
    });
}

#[test]
fn who_enters_is_asked_or_sees_the_page_gone() {
    unmap_meets_a_cpu_that_enters(false);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_mutant_that_looks_before_it_unmaps_is_caught() {
    unmap_meets_a_cpu_that_enters(true);
}

/// Two requests, one after the other, meet the drain that answers the first.
fn request_during_a_drain(look_first: bool) {
    abi_sync::model(move || {
        let world = Arc::new(World::new());
        world.residents.enter(Resident::of(TARGET));
        let first = world.shootdown.begin().unwrap().post(&world.residents, OTHER);
        assert!(first.interrupt.contains(TARGET));
        let target = world.clone();
        let t = thread::spawn(move || {
            let mut cached = true;
            target.return_to_user(&mut cached);
            cached
        });
        let token = world.unmap(look_first);
        let mut cached = t.join().unwrap();
        if world.latched.load(Ordering::Relaxed) {
            world.shootdown.drain(TARGET, || cached = false);
        }
        assert!(first.token.finish(&world.shootdown).is_ok());
        if let Some(token) = token {
            assert!(token.finish(&world.shootdown).is_ok(), "a request is never answered");
        }
        assert!(!cached, "a translation outlives its request");
    });
}

#[test]
fn a_request_during_a_drain_is_answered_or_interrupts_again() {
    request_during_a_drain(false);
}

#[test]
#[should_panic(expected = "a translation outlives its request")]
fn a_mutant_that_asks_during_a_drain_and_unmaps_later_is_caught() {
    request_during_a_drain(true);
}

/// Requests of two CPUs: the answer to the later one covers the earlier one's tables too.
fn later_number(look_first: bool) {
    abi_sync::model(move || {
        let world = Arc::new(World::new());
        world.residents.enter(Resident::of(TARGET));
        let poster = world.clone();
        let other = thread::spawn(move || {
            let posted = poster.shootdown.begin().unwrap().post(&poster.residents, OTHER);
            posted.interrupt.contains(TARGET)
        });
        let target = world.clone();
        let t = thread::spawn(move || {
            let mut cached = true;
            target.return_to_user(&mut cached);
            cached
        });
        let token = world.unmap(look_first);
        let interrupted = other.join().unwrap();
        let mut cached = t.join().unwrap();
        if interrupted || world.latched.load(Ordering::Relaxed) {
            world.shootdown.drain(TARGET, || cached = false);
        }
        if let Some(token) = token {
            assert!(token.finish(&world.shootdown).is_ok(), "a request is never answered");
        }
        assert!(!cached, "a translation outlives its request");
    });
}

#[test]
fn a_later_number_covers_an_earlier_one() {
    later_number(false);
}

#[test]
#[should_panic(expected = "a translation outlives its request")]
fn a_mutant_whose_later_number_comes_before_its_table_is_caught() {
    later_number(true);
}

/// What the protocol may get wrong.
#[derive(Clone, Copy)]
struct Flaws {
    /// The target reads the number after it has flushed.
    reads_late: bool,
    /// The target looks for a newer request without a fence.
    target_without_fence: bool,
    /// The poster looks for an earlier request without a fence.
    poster_without_fence: bool,
}

const NONE: Flaws =
    Flaws { reads_late: false, target_without_fence: false, poster_without_fence: false };

/// One CPU's line on plain words, with the flaws as parameters; request 1 is pending.
fn line_with(flaws: Flaws) {
    abi_sync::model(move || {
        let wanted = Arc::new(AtomicU64::new(1));
        let flushed = Arc::new(AtomicU64::new(0));
        let table = Arc::new(AtomicU64::new(1));
        let drain = move |wanted: &AtomicU64, flushed: &AtomicU64, flush: &mut dyn FnMut()| loop {
            let seen = wanted.load(Ordering::Acquire);
            if seen <= flushed.load(Ordering::Relaxed) {
                return;
            }
            flush();
            let answer = if flaws.reads_late { wanted.load(Ordering::Acquire) } else { seen };
            flushed.store(answer, Ordering::Release);
            if !flaws.target_without_fence {
                fence(Ordering::SeqCst);
            }
        };
        let (w, f, t) = (wanted.clone(), flushed.clone(), table.clone());
        let target = thread::spawn(move || {
            let mut cached = false;
            // Flushed, the page is used again at once, as an interrupted program would.
            drain(&w, &f, &mut || cached = t.load(Ordering::Relaxed) == 1);
            cached
        });
        table.store(0, Ordering::Relaxed);
        let before = wanted.fetch_max(2, Ordering::Release);
        if !flaws.poster_without_fence {
            fence(Ordering::SeqCst);
        }
        let interrupt = flushed.load(Ordering::Relaxed) >= before;
        let mut cached = target.join().unwrap();
        if interrupt {
            drain(&wanted, &flushed, &mut || cached = false);
        }
        assert_eq!(flushed.load(Ordering::Relaxed), 2, "a request is never answered");
        assert!(!cached, "a translation outlives its request");
    });
}

#[test]
fn the_line_without_flaws_holds() {
    line_with(NONE);
}

#[test]
#[should_panic(expected = "a translation outlives its request")]
fn a_mutant_that_answers_what_it_did_not_flush_is_caught() {
    line_with(Flaws { reads_late: true, ..NONE });
}

#[test]
#[should_panic(expected = "a request is never answered")]
fn a_mutant_target_without_fence_is_caught() {
    line_with(Flaws { target_without_fence: true, ..NONE });
}

#[test]
#[should_panic(expected = "a request is never answered")]
fn a_mutant_poster_without_fence_is_caught() {
    line_with(Flaws { poster_without_fence: true, ..NONE });
}

/// Numbers handed out without order: the answer to the later one does not cover the earlier.
fn numbers_with(order: Ordering) {
    abi_sync::model(move || {
        let generation = Arc::new(AtomicU64::new(0));
        let wanted = Arc::new(AtomicU64::new(0));
        let table = Arc::new(AtomicU64::new(1));
        let (g, w) = (generation.clone(), wanted.clone());
        let other = thread::spawn(move || {
            let mine = g.fetch_add(1, order) + 1;
            w.fetch_max(mine, Ordering::Release);
        });
        let (w, t) = (wanted.clone(), table.clone());
        let target = thread::spawn(move || {
            let seen = w.load(Ordering::Acquire);
            (seen, t.load(Ordering::Relaxed) == 1)
        });
        table.store(0, Ordering::Relaxed);
        let mine = generation.fetch_add(1, order) + 1;
        let (flushed, cached) = target.join().unwrap();
        other.join().unwrap();
        assert!(flushed < mine || !cached, "a translation outlives its request");
    });
}

#[test]
fn ordered_numbers_cover_each_other() {
    numbers_with(Ordering::AcqRel);
}

#[test]
#[should_panic(expected = "a translation outlives its request")]
fn a_mutant_with_unordered_numbers_is_caught() {
    numbers_with(Ordering::Relaxed);
}
