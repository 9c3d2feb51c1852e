//! The list of regions against a map from each page to what it is.

use core_vm::*;
use std::collections::BTreeMap;
use test_property::prelude::*;

/// What a page that is not reserved is: access, ceiling and the page behind it.
type Behind = (Access, Ceiling, Backing);

/// What one page is: reserved without anything behind it; and which change of the list it is in transit for, in
/// which piece of that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Page {
    behind: Option<Behind>,
    transit: Option<(u32, usize, Way)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    In,
    Out,
    /// Not in transit: a registered buffer's.
    Held,
}

impl Page {
    fn settled(behind: Option<Behind>) -> Self {
        Self { behind, transit: None }
    }

    fn next(self) -> Self {
        Self { behind: self.behind.map(next_page), ..self }
    }

    fn usage(self) -> Use {
        match (self.behind, self.transit) {
            (None, None) => Use::Reserved,
            (Some((access, ceiling, backing)), None) => Use::Mapped { access, ceiling, backing },
            (Some((access, ceiling, backing)), Some((_, _, Way::In))) => {
                Use::Settling { access, ceiling, backing }
            }
            (Some((access, ceiling, backing)), Some((_, _, Way::Held))) => {
                Use::Registered { access, ceiling, backing }
            }
            (behind, Some((_, _, Way::Out))) => Use::Leaving(behind.map(|(_, _, backing)| backing)),
            (None, Some((_, _, Way::In | Way::Held))) => {
                unreachable!("nothing settles or is registered without memory")
            }
        }
    }
}

/// What is behind the page so many later.
fn after(backing: Backing, pages: u64) -> Backing {
    match backing {
        Backing::Own => Backing::Own,
        Backing::Object { id, first_page } => {
            Backing::Object { id, first_page: first_page + pages }
        }
    }
}

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
    Unmap(Place, Option<u64>),
    Protect(Place, Access, Option<u64>),
    Register(Place, bool),
    Unregister(usize),
    Settle(usize),
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

/// Whether an object is meant.
fn only() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![4 => Just(None), 1 => (1_u64..3).prop_map(Some)]
}

fn op() -> impl Strategy<Value = Op> {
    let object = prop::option::of((1_u64..3, 0_u64..20));
    prop_oneof![
        8 => (place(), access(), ceiling(), object).prop_map(|(p, a, c, o)| Op::Map(p, a, c, o)),
        2 => (0_u64..9, 0..WINDOW * 4096, access()).prop_map(|(n, h, a)| Op::MapAnywhere(n, h, a)),
        3 => place().prop_map(Op::Reserve),
        7 => (place(), only()).prop_map(|(p, o)| Op::Unmap(p, o)),
        6 => (place(), access(), only()).prop_map(|(p, a, o)| Op::Protect(p, a, o)),
        5 => (place(), any::<bool>()).prop_map(|(p, w)| Op::Register(p, w)),
        4 => (0_usize..4).prop_map(Op::Unregister),
        14 => (0_usize..4).prop_map(Op::Settle),
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

/// The regions that a map from pages comes to: runs of pages that continue each other, in one piece of one change
/// if they are in transit.
fn runs(model: &Model) -> Vec<Region> {
    let mut runs: Vec<Region> = Vec::new();
    let mut last: Option<(u64, Page)> = None;
    for (&page, &what) in model {
        let expected = last.map(|(page, what)| (page + 1, what.next()));
        match runs.last_mut() {
            Some(run) if expected == Some((page, what)) => {
                let pages = run.range.pages() + 1;
                run.range = PageRange::from_page(run.range.first(), pages).unwrap();
            }
            _ => {
                let range = PageRange::from_page(page, 1).unwrap();
                runs.push(Region { range, usage: what.usage() });
            }
        }
        last = Some((page, what));
    }
    runs
}

fn next_page((access, ceiling, backing): Behind) -> Behind {
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

struct World {
    list: List,
    model: Model,
    limit: usize,
    /// Changes that are not settled.
    begun: Vec<(u32, PageRange)>,
    /// Buffers that are not given up.
    held: Vec<(u32, PageRange)>,
    changes: u32,
}

impl World {
    fn new() -> Self {
        let list = Regions::new(vec![Region::UNUSED; LIMIT + 2]).unwrap();
        Self {
            list,
            model: Model::new(),
            limit: LIMIT,
            begun: Vec::new(),
            held: Vec::new(),
            changes: 0,
        }
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

    fn agree<T>(&mut self, got: Result<T, VmError>, expected: Result<Model, VmError>) -> Option<T> {
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
                Some(Page { transit: Some((_, _, Way::In | Way::Out)), .. }) => Err(VmError::Busy),
                Some(Page { behind: Some(_), .. }) => Err(VmError::Occupied),
                _ => {
                    let behind = (0..page - place.first)
                        .fold((access, ceiling, backing), |b, _| next_page(b));
                    let transit = Some((self.changes, 0, Way::In));
                    Ok(Some(Page { behind: Some(behind), transit }))
                }
            })
        };
        let reserved = (place.first..place.first + place.pages)
            .filter(|page| self.model.get(page) == Some(&Page::settled(None)))
            .count() as u64;
        let got = self.list.map(range, access, ceiling, backing, OBJECT_PAGES);
        if let Some(mapped) = self.agree(got, expected) {
            assert_eq!(mapped, Mapped { range, from_reserved: reserved });
            self.begin(range);
        }
    }

    /// A change of that range is not settled.
    fn begin(&mut self, range: PageRange) {
        self.begun.push((self.changes, range));
        self.changes += 1;
    }

    /// Which of the regions of before the page is in.
    fn piece(&self, page: u64) -> usize {
        runs(&self.model).iter().position(|run| run.range.end() > page).unwrap()
    }

    /// Whether a page may be changed by who means that object.
    fn may_change(old: Option<&Page>, only: Option<u64>) -> Result<Page, VmError> {
        match old {
            None => Err(VmError::NotMapped),
            Some(Page { transit: Some((_, _, Way::Held)), .. }) => Err(VmError::Registered),
            Some(Page { transit: Some(_), .. }) => Err(VmError::Busy),
            Some(page) => match (only, page.behind) {
                (None, _) => Ok(*page),
                (Some(id), Some((_, _, Backing::Object { id: of, .. }))) if of == id => Ok(*page),
                _ => Err(VmError::NotOfObject),
            },
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
                    None => Ok(Some(Page::settled(None))),
                });
                let got = self.list.reserve(range);
                self.agree(got, expected);
            }
            Op::Unmap(place, only) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |page, old| {
                    let old = Self::may_change(old, only)?;
                    let transit = Some((self.changes, self.piece(page), Way::Out));
                    Ok(Some(Page { transit, ..old }))
                });
                let got = self.list.unmap(range, only);
                if self.agree(got, expected).is_some() {
                    self.begin(range);
                }
            }
            Op::Protect(place, access, only) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |page, old| {
                    // Reserved pages are not mapped, whoever's they would be.
                    if old == Some(&Page::settled(None)) {
                        return Err(VmError::NotMapped);
                    }
                    let old = Self::may_change(old, only)?;
                    let (_, ceiling, backing) = old.behind.unwrap();
                    if !permits(ceiling, access) {
                        return Err(VmError::AboveCeiling);
                    }
                    let transit = Some((self.changes, self.piece(page), Way::In));
                    Ok(Some(Page { behind: Some((access, ceiling, backing)), transit }))
                });
                let got = self.list.protect(range, access, only);
                if self.agree(got, expected).is_some() {
                    self.begin(range);
                }
            }
            Op::Register(place, is_written) => {
                let Ok(range) = PageRange::from_page(place.first, place.pages) else { return };
                let expected = self.expect(place, |page, old| {
                    let old = Self::may_change(old, None)?;
                    let (access, _, _) = old.behind.ok_or(VmError::NotMapped)?;
                    if is_written && access != Access::Write {
                        return Err(VmError::NotWritable);
                    }
                    let transit = Some((self.changes, self.piece(page), Way::Held));
                    Ok(Some(Page { transit, ..old }))
                });
                let got = self.list.register(range, is_written);
                if self.agree(got, expected).is_some() {
                    self.held.push((self.changes, range));
                    self.changes += 1;
                }
            }
            Op::Unregister(number) => {
                if self.held.is_empty() {
                    return;
                }
                let (change, range) = self.held.remove(number % self.held.len());
                self.list.unregister(range);
                for page in self.model.values_mut() {
                    if matches!(page.transit, Some((of, _, Way::Held)) if of == change) {
                        page.transit = None;
                    }
                }
            }
            Op::Settle(number) => {
                if self.begun.is_empty() {
                    return;
                }
                let (change, range) = self.begun.remove(number % self.begun.len());
                let mut told = Vec::new();
                self.list.settle(range, |piece| {
                    let backing = piece.usage.backing().unwrap();
                    (piece.range.first()..piece.range.end()).for_each(|page| {
                        told.push((page, after(backing, page - piece.range.first())));
                    });
                });
                let mut gone = Vec::new();
                self.model.retain(|number, page| match page.transit {
                    Some((of, _, Way::Out)) if of == change => {
                        gone.extend(page.behind.map(|(_, _, backing)| (*number, backing)));
                        false
                    }
                    Some((of, _, Way::In)) if of == change => {
                        page.transit = None;
                        true
                    }
                    _ => true,
                });
                assert_eq!(told, gone, "what it says has gone");
            }
            Op::Drain(most) => {
                // The end of a process: nothing is in transit any more.
                while !self.begun.is_empty() {
                    self.step(&Op::Settle(0));
                }
                while !self.held.is_empty() {
                    self.step(&Op::Unregister(0));
                }
                let taken: Vec<Region> = self.list.all().iter().take(most).copied().collect();
                let mut gone = Vec::new();
                let empty = self.list.drain(most, |piece| gone.push(piece));
                assert_eq!(empty, self.list.all().is_empty());
                let is_backed = |r: &Region| !matches!(r.usage, Use::Reserved | Use::Leaving(None));
                let mapped: Vec<_> = taken.iter().copied().filter(is_backed).collect();
                assert_eq!(gone, mapped);
                for region in &taken {
                    (region.range.first()..region.range.end()).for_each(|page| {
                        self.model.remove(&page).unwrap();
                    });
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
        let mapped = self.model.values().filter(|what| what.behind.is_some()).count() as u64;
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
