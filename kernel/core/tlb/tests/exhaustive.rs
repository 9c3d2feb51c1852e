//! Every interleaving of three CPUs with a small address space: no frame is reused while a CPU
//! has its translation, no request is lost, and too many are refused before tables change.
//!
//! A state is reached by playing its moves again; states that look alike are visited once. Moves
//! are whole operations here; what happens inside of them is for the loom model.

use core_tlb::*;
use std::collections::{HashSet, VecDeque};

const CPUS: usize = 3;
const PAGES: usize = 2;
/// Requests that may be open at a time.
const LIMIT: u32 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Loads the space's root.
    Enter(usize),
    /// Uses every page that is mapped: its translations are cached.
    Touch(usize),
    /// Loads another root.
    Leave(usize),
    /// Takes a page out of the tables.
    Unmap(usize, usize),
    /// Posts the request for it.
    Post(usize, usize),
    /// The interrupt arrives.
    Interrupt(usize),
    /// Looks at its requests on the way in or out of the kernel.
    Look(usize),
    /// Frees the frame of a page, if its request is over.
    Finish(usize),
}

/// What is known about a page and its frame.
#[derive(Debug)]
enum Page<'s> {
    Mapped,
    /// Taken out of the tables by a CPU that has not posted.
    Taken(usize, Option<Permit<'s, CPUS>>),
    Waiting(Token),
    Freed,
}

struct World<'s> {
    shootdown: &'s Shootdown<CPUS>,
    residents: Residents,
    resident: [bool; CPUS],
    cached: [[bool; PAGES]; CPUS],
    latched: [bool; CPUS],
    pages: [Page<'s>; PAGES],
    /// The mutant: asks who is resident before it changes the tables.
    posts_early: bool,
}

impl<'s> World<'s> {
    fn new(shootdown: &'s Shootdown<CPUS>, posts_early: bool) -> Self {
        Self {
            shootdown,
            residents: Residents::new(),
            resident: [false; CPUS],
            cached: [[false; PAGES]; CPUS],
            latched: [false; CPUS],
            pages: [const { Page::Mapped }; PAGES],
            posts_early,
        }
    }

    fn is_mapped(&self, page: usize) -> bool {
        match &self.pages[page] {
            Page::Mapped => true,
            // The mutant's tables still have the page while its request is posted.
            Page::Taken(..) => self.posts_early,
            Page::Waiting(_) | Page::Freed => false,
        }
    }

    fn moves(&self) -> Vec<Move> {
        let mut moves = Vec::new();
        for cpu in 0..CPUS {
            moves.push(if self.resident[cpu] { Move::Leave(cpu) } else { Move::Enter(cpu) });
            if self.resident[cpu] {
                moves.push(Move::Touch(cpu));
            }
            if self.latched[cpu] {
                moves.push(Move::Interrupt(cpu));
            }
            if self.shootdown.is_pending(cpu) {
                moves.push(Move::Look(cpu));
            }
            for page in 0..PAGES {
                match &self.pages[page] {
                    Page::Mapped => moves.push(Move::Unmap(cpu, page)),
                    Page::Taken(by, _) if *by == cpu => moves.push(Move::Post(cpu, page)),
                    _ => {}
                }
            }
        }
        for page in 0..PAGES {
            if matches!(&self.pages[page], Page::Waiting(token) if token.is_done(self.shootdown)) {
                moves.push(Move::Finish(page));
            }
        }
        moves
    }

    fn drain(&mut self, cpu: usize) {
        let cached = &mut self.cached[cpu];
        self.shootdown.drain(cpu, || *cached = [false; PAGES]);
    }

    fn post(&mut self, cpu: usize, permit: Permit<'s, CPUS>) -> Token {
        let posted = permit.post(&self.residents, cpu);
        if posted.flush_here {
            self.cached[cpu] = [false; PAGES];
        }
        for target in posted.interrupt.iter() {
            self.latched[target] = true;
        }
        posted.token
    }

    fn play(&mut self, next: Move) {
        match next {
            Move::Enter(cpu) => {
                self.residents.enter(Resident::of(cpu));
                self.resident[cpu] = true;
            }
            Move::Touch(cpu) => {
                for page in 0..PAGES {
                    self.cached[cpu][page] |= self.is_mapped(page);
                }
            }
            Move::Leave(cpu) => {
                self.cached[cpu] = [false; PAGES];
                self.residents.leave(Resident::of(cpu));
                self.resident[cpu] = false;
            }
            Move::Unmap(cpu, page) => {
                let permit = self.shootdown.begin().unwrap();
                self.pages[page] = Page::Taken(cpu, Some(permit));
                if self.posts_early {
                    let Page::Taken(_, permit) = &mut self.pages[page] else { unreachable!() };
                    let permit = permit.take().unwrap();
                    let token = self.post(cpu, permit);
                    // Kept aside until the tables have changed.
                    EARLY.with_borrow_mut(|early| early.push((page, token)));
                }
            }
            Move::Post(cpu, page) => {
                let Page::Taken(_, permit) = &mut self.pages[page] else { unreachable!() };
                let token = match permit.take() {
                    Some(permit) => self.post(cpu, permit),
                    None => EARLY.with_borrow_mut(|early| {
                        let at = early.iter().position(|(of, _)| *of == page).unwrap();
                        early.remove(at).1
                    }),
                };
                self.pages[page] = Page::Waiting(token);
            }
            Move::Interrupt(cpu) => {
                self.latched[cpu] = false;
                self.drain(cpu);
            }
            Move::Look(cpu) => self.drain(cpu),
            Move::Finish(page) => {
                let waiting = std::mem::replace(&mut self.pages[page], Page::Freed);
                let Page::Waiting(token) = waiting else { unreachable!() };
                token.finish(self.shootdown).unwrap();
            }
        }
    }

    fn check(&self) {
        self.shootdown.check_invariants().unwrap();
        for page in 0..PAGES {
            if matches!(self.pages[page], Page::Freed) {
                let holder = (0..CPUS).find(|cpu| self.cached[*cpu][page]);
                assert_eq!(holder, None, "a frame is reused while a CPU has its translation");
            }
        }
        for cpu in 0..CPUS {
            assert!(!self.shootdown.is_pending(cpu) || self.latched[cpu], "a request is lost");
        }
    }

    /// Everything that decides what can happen next.
    fn key(&self) -> String {
        format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            self.shootdown, self.residents, self.resident, self.cached, self.latched, self.pages
        )
    }
}

thread_local! {
    static EARLY: std::cell::RefCell<Vec<(usize, Token)>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn explore(posts_early: bool) -> usize {
    let mut seen = HashSet::new();
    let mut left = VecDeque::from([Vec::new()]);
    while let Some(path) = left.pop_front() {
        let shootdown = Shootdown::new(LIMIT);
        EARLY.with_borrow_mut(Vec::clear);
        let mut world = World::new(&shootdown, posts_early);
        for step in &path {
            world.play(*step);
        }
        world.check();
        if !seen.insert(world.key()) {
            continue;
        }
        for next in world.moves() {
            let mut longer = path.clone();
            longer.push(next);
            left.push_back(longer);
        }
        // Whatever state this is: when the interrupts have arrived, every posted request is over.
        for cpu in 0..CPUS {
            if world.latched[cpu] {
                world.play(Move::Interrupt(cpu));
            }
        }
        for page in &world.pages {
            if let Page::Waiting(token) = page {
                assert!(token.is_done(&shootdown), "a request is never answered");
            }
        }
    }
    seen.len()
}

#[test]
fn no_frame_is_reused_early_and_no_request_is_lost() {
    let states = explore(false);
    println!("{states} states");
    assert!(states > 1000, "{states} states are too few to mean anything");
}

#[test]
#[should_panic(expected = "a frame is reused while a CPU has its translation")]
fn a_mutant_that_looks_before_it_unmaps_is_caught() {
    explore(true);
}

/// M6: what does not fit is refused before anything has changed.
#[test]
fn overflow_fails_closed_before_mutation() {
    let shootdown = Shootdown::<2>::new(2);
    let residents = Residents::new();
    residents.enter(Resident::of(1));
    let first = shootdown.begin().unwrap().post(&residents, 0);
    let second = shootdown.begin().unwrap();
    let before = format!("{shootdown:?}");
    assert_eq!(shootdown.begin().unwrap_err(), BeginError::TooMany);
    assert_eq!(format!("{shootdown:?}"), before);
    drop(second);
    assert!(shootdown.begin().is_ok(), "an unused permit goes back");
    // An open request keeps its place until every CPU has answered.
    let Err(token) = first.token.finish(&shootdown) else { panic!("nobody has answered") };
    assert_eq!(shootdown.open(), 1);
    assert!(shootdown.drain(1, || ()));
    assert!(!shootdown.drain(1, || panic!("nothing left to flush")));
    token.finish(&shootdown).unwrap();
    assert_eq!(shootdown.open(), 0);

    let old = Shootdown::<2>::starting_at(4, u64::MAX - 5);
    assert_eq!(old.begin().unwrap_err(), BeginError::Exhausted);
    let still = Shootdown::<2>::starting_at(4, u64::MAX - 6);
    let posted = still.begin().unwrap().post(&residents, 0);
    assert!(still.drain(1, || ()));
    posted.token.finish(&still).unwrap();
    assert_eq!(still.begin().unwrap_err(), BeginError::Exhausted);
}

/// A second request at a CPU that has one pending sends no interrupt and is answered with it.
#[test]
fn overlapping_requests_share_an_interrupt() {
    let shootdown = Shootdown::<3>::new(8);
    let residents = Residents::new();
    residents.enter(Resident::of(1));
    residents.enter(Resident::of(2));
    let one = shootdown.begin().unwrap().post(&residents, 0);
    assert_eq!(one.interrupt.bits(), 0b110);
    assert!(!one.flush_here);
    let two = shootdown.begin().unwrap().post(&residents, 1);
    assert_eq!(two.interrupt.bits(), 0, "CPU 2 has one on its way");
    assert_eq!(two.token.cpus().bits(), 0b100);
    assert!(two.flush_here);
    let mut flushes = 0;
    shootdown.drain(2, || flushes += 1);
    assert_eq!(flushes, 1);
    assert!(two.token.finish(&shootdown).is_ok());
    let token = one.token.finish(&shootdown).unwrap_err();
    shootdown.drain(1, || ());
    assert!(token.finish(&shootdown).is_ok());
}
