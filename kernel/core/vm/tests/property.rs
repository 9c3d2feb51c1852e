//! The list of regions against a map from each page to what it is.

use core_vm::*;
use std::collections::BTreeMap;
use test_property::prelude::*;

/// What one page is: `None` reserved, else access, ceiling and the page behind it.
type Page = Option<(Access, Ceiling, Backing)>;
type Model = BTreeMap<u64, Page>;
type List = Regions<Vec<Region>>;

const LIMIT: usize = 7;
/// Pages of every object.
const OBJECT_PAGES: u64 = 24;
/// So much of the space is played with, from either of two places.
const WINDOW: u64 = 24;

#[derive(Clone, Copy, Debug)]
struct Place {
    first: u64,
    pages: u64,
}

#[derive(Clone, Debug)]
enum Op {
    Map(Place, Access, Ceiling, Option<(u64, u64)>),
    MapAnywhere(u64, u64, Access),
    Reserve(Place),
    Unmap(Place),
    Protect(Place, Access),
    Drain(usize),
    Grow,
}

/// Around the first page, or around the end of the kernel's upper area.
fn place() -> impl Strategy<Value = Place> {
    let base = prop_oneof![3 => Just(0), 1 => Just(AREAS[1].end - 6)];
    (base, 0..WINDOW, 0_u64..10).prop_map(|(base, at, pages)| Place { first: base + at, pages })
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Execute)]
}

fn ceiling() -> impl Strategy<Value = Ceiling> {
    prop_oneof![
        3 => Just(Ceiling::ANY),
        1 => Just(Ceiling { write: false, execute: true }),
        1 => Just(Ceiling { write: false, execute: false }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let object = prop::option::of((1_u64..3, 0_u64..20));
    prop_oneof![
        8 => (place(), access(), ceiling(), object).prop_map(|(p, a, c, o)| Op::Map(p, a, c, o)),
        2 => (0_u64..9, 0..WINDOW * 4096, access()).prop_map(|(n, h, a)| Op::MapAnywhere(n, h, a)),
        3 => place().prop_map(Op::Reserve),
        7 => place().prop_map(Op::Unmap),
        6 => (place(), access()).prop_map(|(p, a)| Op::Protect(p, a)),
        1 => (0_usize..4).prop_map(Op::Drain),
        1 => Just(Op::Grow),
    ]
}

fn is_kernel(page: u64) -> bool {
    AREAS.iter().any(|area| (area.first..area.end).contains(&page))
}

/// Independent of `PageRange`: page by page.
fn good(place: Place) -> bool {
    place.pages > 0
        && (place.first..place.first + place.pages).all(|p| p > 0 && p < LAST_PAGE && !is_kernel(p))
}

/// The regions that a map from pages comes to: runs of pages that continue each other.
fn runs(model: &Model) -> Vec<Region> {
    let mut runs: Vec<Region> = Vec::new();
    let mut last: Option<(u64, Page)> = None;
    for (&page, &what) in model {
        let expected = last.map(|(page, what)| (page + 1, what.map(next_page)));
        let usage = match what {
            None => Use::Reserved,
            Some((access, ceiling, backing)) => Use::Mapped { access, ceiling, backing },
        };
        match runs.last_mut() {
            Some(run) if expected == Some((page, what)) => {
                let pages = run.range.pages() + 1;
                run.range = PageRange::from_page(run.range.first(), pages).unwrap();
            }
            _ => runs.push(Region { range: PageRange::from_page(page, 1).unwrap(), usage }),
        }
        last = Some((page, what));
    }
    runs
}

fn next_page((access, ceiling, backing): (Access, Ceiling, Backing)) -> (Access, Ceiling, Backing) {
    let backing = match backing {
        Backing::Own => Backing::Own,
        Backing::Object { id, first_page } => Backing::Object { id, first_page: first_page + 1 },
    };
    (access, ceiling, backing)
}

fn permits(ceiling: Ceiling, access: Access) -> bool {
    match access {
        Access::Read => true,
        Access::Write => ceiling.write,
        Access::Execute => ceiling.execute,
    }
}

/// Spreads pieces over pages.
fn spread(pieces: &[Region]) -> Model {
    let mut pages = Model::new();
    for piece in pieces {
        let mut what = match piece.usage {
            Use::Reserved => None,
            Use::Mapped { access, ceiling, backing } => Some((access, ceiling, backing)),
        };
        for page in piece.range.first()..piece.range.end() {
            assert_eq!(pages.insert(page, what), None, "a page was shown twice");
            what = what.map(next_page);
        }
    }
    pages
}

struct World {
    list: List,
    model: Model,
    limit: usize,
}

impl World {
    fn new() -> Self {
        let list = Regions::new(vec![Region::UNUSED; LIMIT + 2]).unwrap();
        Self { list, model: Model::new(), limit: LIMIT }
    }

    /// What the operation must do to the model, or which error it must give.
    fn expect(
        &self,
        place: Place,
        change: impl Fn(u64, Option<&Page>) -> Result<Option<Page>, VmError>,
    ) -> Result<Model, VmError> {
        let mut after = self.model.clone();
        for page in place.first..place.first + place.pages {
            match change(page, self.model.get(&page))? {
                Some(what) => after.insert(page, what),
                None => after.remove(&page),
            };
        }
        if runs(&after).len() > self.limit { Err(VmError::Full) } else { Ok(after) }
    }

    fn settle<T>(
        &mut self,
        got: Result<T, VmError>,
        expected: Result<Model, VmError>,
    ) -> Option<T> {
        match (got, expected) {
            (Ok(value), Ok(after)) => {
                self.model = after;
                Some(value)
            }
            (Err(got), Err(expected)) => {
                assert_eq!(got, expected);
                None
            }
            (got, expected) => panic!("{:?} where {expected:?} is right", got.err()),
        }
    }

    fn map(&mut self, place: Place, access: Access, ceiling: Ceiling, object: Option<(u64, u64)>) {
        let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
        let backing =
            object.map_or(Backing::Own, |(id, first_page)| Backing::Object { id, first_page });
        let expected = if !permits(ceiling, access) {
            Err(VmError::AboveCeiling)
        } else if object.is_some_and(|(_, first)| first + place.pages > OBJECT_PAGES) {
            Err(VmError::ObjectTooShort)
        } else {
            self.expect(place, |page, old| match old {
                Some(Some(_)) => Err(VmError::Occupied),
                _ => {
                    let behind = (0..page - place.first)
                        .fold((access, ceiling, backing), |b, _| next_page(b));
                    Ok(Some(Some(behind)))
                }
            })
        };
        let reserved = (place.first..place.first + place.pages)
            .filter(|page| self.model.get(page) == Some(&None))
            .count() as u64;
        let got = self.list.map(range, access, ceiling, backing, OBJECT_PAGES);
        if let Some(mapped) = self.settle(got, expected) {
            assert_eq!(mapped, Mapped { range, from_reserved: reserved });
        }
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Map(place, access, ceiling, object) => {
                assert_eq!(PageRange::from_page(place.first, place.pages).is_ok(), good(place));
                self.map(place, access, ceiling, object);
            }
            Op::MapAnywhere(pages, hint, access) => {
                let fits = |first| {
                    let place = Place { first, pages };
                    good(place) && (first..first + pages).all(|p| !self.model.contains_key(&p))
                };
                let hint_page = hint.div_ceil(4096);
                let found = self.list.find_free(pages, hint).map(PageRange::first);
                if pages == 0 {
                    assert_eq!(found, Err(VmError::NoRoom));
                } else {
                    let lowest = (hint_page..hint_page + 10 * WINDOW).find(|first| fits(*first));
                    assert_eq!(found.ok(), lowest);
                    self.map(Place { first: lowest.unwrap(), pages }, access, Ceiling::ANY, None);
                }
            }
            Op::Reserve(place) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |_, old| match old {
                    Some(_) => Err(VmError::Occupied),
                    None => Ok(Some(None)),
                });
                let got = self.list.reserve(range);
                self.settle(got, expected);
            }
            Op::Unmap(place) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |_, old| match old {
                    Some(_) => Ok(None),
                    None => Err(VmError::NotMapped),
                });
                let before: Model = self
                    .model
                    .range(range.first()..range.end())
                    .filter(|(_, what)| what.is_some())
                    .map(|(page, what)| (*page, *what))
                    .collect();
                let mut gone = Vec::new();
                let got = self.list.unmap(range, |piece| gone.push(piece));
                let done = self.settle(got, expected).is_some();
                assert_eq!(spread(&gone), if done { before } else { Model::new() });
            }
            Op::Protect(place, access) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |_, old| match old {
                    Some(Some((_, ceiling, _))) if !permits(*ceiling, access) => {
                        Err(VmError::AboveCeiling)
                    }
                    Some(Some((_, ceiling, backing))) => {
                        Ok(Some(Some((access, *ceiling, *backing))))
                    }
                    _ => Err(VmError::NotMapped),
                });
                let before = self.model.clone();
                let mut changed = Vec::new();
                let got = self.list.protect(range, access, |piece| changed.push(piece));
                self.settle(got, expected);
                let differ: Model = self
                    .model
                    .iter()
                    .filter(|(page, what)| before.get(page) != Some(what))
                    .map(|(page, what)| (*page, *what))
                    .collect();
                assert_eq!(spread(&changed), differ);
            }
            Op::Drain(most) => {
                let taken: Vec<Region> = self.list.all().iter().take(most).copied().collect();
                let mut gone = Vec::new();
                let empty = self.list.drain(most, |piece| gone.push(piece));
                assert_eq!(empty, self.list.all().is_empty());
                let mapped: Vec<_> =
                    taken.iter().copied().filter(|r| r.usage != Use::Reserved).collect();
                assert_eq!(gone, mapped);
                for page in spread(&taken).keys() {
                    self.model.remove(page);
                }
            }
            Op::Grow => {
                let before = self.list.all().to_vec();
                let old = self.list.move_to(vec![Region::UNUSED; self.limit + 3]).unwrap();
                assert_eq!(old.len(), self.limit + 2);
                assert_eq!(self.list.all(), before);
                self.limit += 1;
                if before.len() > 1 {
                    let short = vec![Region::UNUSED; before.len() + 1];
                    assert_eq!(self.list.move_to(short), Err(StorageError));
                }
            }
        }
    }

    fn check(&self) {
        self.list.check_invariants().unwrap();
        assert_eq!(self.list.all(), runs(&self.model));
        assert_eq!(self.list.limit(), self.limit);
        let mapped = self.model.values().filter(|what| what.is_some()).count() as u64;
        assert_eq!(self.list.mapped_pages(), mapped);
        for page in (0..WINDOW + 12).chain(AREAS[1].end - 7..AREAS[1].end + WINDOW) {
            assert_eq!(self.list.find(page).is_some(), self.model.contains_key(&page));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn regions_are_what_the_pages_are(ops in prop::collection::vec(op(), 1..60)) {
        let mut world = World::new();
        for op in &ops {
            world.step(op);
            world.check();
        }
    }
}
