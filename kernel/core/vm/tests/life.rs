//! The life of a memory object against sets of who has what.

use core_vm::{LetGo, ObjectLife, Over, Payer};
use std::collections::BTreeMap;
use test_property::prelude::*;

/// What a process has of the object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Has {
    capabilities: u32,
    pages: u64,
    pays: bool,
}

const MAKER: usize = 0;
const PROCESSES: usize = 4;

/// Processes that copy capabilities, release them, map, unmap and end.
#[derive(Clone, Copy, Debug)]
enum Op {
    Copy { from: usize, to: usize },
    Release { by: usize },
    Map { by: usize, pages: u64 },
    Unmap { by: usize },
    End { of: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let who = || 0..PROCESSES;
    prop_oneof![
        (who(), who()).prop_map(|(from, to)| Op::Copy { from, to }),
        who().prop_map(|by| Op::Release { by }),
        (who(), 1..4_u64).prop_map(|(by, pages)| Op::Map { by, pages }),
        who().prop_map(|by| Op::Unmap { by }),
        who().prop_map(|of| Op::End { of }),
    ]
}

struct World {
    life: ObjectLife,
    has: BTreeMap<usize, Has>,
    /// How often its frames were freed.
    freed: u32,
}

impl World {
    fn new() -> Self {
        let maker = Has { capabilities: 1, pages: 0, pays: true };
        let mut has: BTreeMap<_, _> = (0..PROCESSES).map(|n| (n, Has::default())).collect();
        has.insert(MAKER, maker);
        Self { life: ObjectLife::new(), has, freed: 0 }
    }

    /// The rule, said slowly: who ought to pay.
    fn ought_to_pay(&self, who: usize) -> bool {
        let all = || self.has.values();
        let is_used = all().any(|has| has.capabilities > 0 || has.pages > 0);
        let maps = self.has.get(&who).is_some_and(|has| has.pages > 0);
        maps || (who == MAKER && is_used && self.has.contains_key(&MAKER))
    }

    fn leave(&mut self, who: usize) {
        let verdict = self.life.leave(who == MAKER);
        if let Some(has) = self.has.get_mut(&who) {
            has.pays = false;
        }
        self.carry_out(verdict);
    }

    fn carry_out(&mut self, verdict: LetGo) {
        match verdict {
            LetGo::Keep => {}
            LetGo::MakerLeaves => self.leave(MAKER),
            LetGo::Free => self.freed += 1,
        }
    }

    fn step(&mut self, op: Op) {
        match op {
            Op::Copy { from, to } => {
                let (Some(source), true) = (self.has.get(&from), self.has.contains_key(&to)) else {
                    return;
                };
                if source.capabilities > 0 && self.life.retain().is_ok() {
                    self.has.get_mut(&to).unwrap().capabilities += 1;
                }
            }
            Op::Release { by } => {
                let Some(has) = self.has.get_mut(&by).filter(|has| has.capabilities > 0) else {
                    return;
                };
                has.capabilities -= 1;
                let verdict = self.life.release();
                self.carry_out(verdict);
            }
            Op::Map { by, pages } => {
                let is_over = self.freed > 0;
                let Some(has) = self.has.get_mut(&by).filter(|has| has.capabilities > 0) else {
                    return;
                };
                let payer = if has.pays { Payer::Known } else { Payer::New };
                let mapped = self.life.map(pages, payer);
                assert_eq!(mapped, if is_over { Err(Over) } else { Ok(()) });
                if mapped.is_ok() {
                    *has = Has { pages: has.pages + pages, pays: true, ..*has };
                }
            }
            Op::Unmap { by } => {
                let Some(has) = self.has.get_mut(&by).filter(|has| has.pages > 0) else { return };
                self.life.unmap(has.pages);
                has.pages = 0;
                if by != MAKER || self.life.is_unused() {
                    self.leave(by);
                }
            }
            Op::End { of } => {
                let Some(mut has) = self.has.get(&of).copied() else { return };
                while has.capabilities > 0 {
                    self.step(Op::Release { by: of });
                    has.capabilities -= 1;
                }
                let has = self.has[&of];
                self.life.unmap(has.pages);
                self.has.get_mut(&of).unwrap().pages = 0;
                if has.pays {
                    self.leave(of);
                }
                self.has.remove(&of);
            }
        }
    }

    fn check(&self) {
        for who in 0..PROCESSES {
            let pays = self.has.get(&who).is_some_and(|has| has.pays);
            // Once nobody pays the object is over, whatever capabilities there are.
            let ought = self.freed == 0 && self.ought_to_pay(who);
            assert_eq!(pays, ought, "process {who}");
        }
        let payers = self.has.values().filter(|has| has.pays).count() as u32;
        assert_eq!(self.life.payers(), payers);
        assert_eq!(self.freed, u32::from(payers == 0), "freed once, when nobody pays");
        assert_eq!(self.life.is_over(), payers == 0);
        assert_eq!(self.life.mapped_pages(), self.has.values().map(|has| has.pages).sum());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    /// C11: the frames are there while somebody pays, who maps pays, and they are freed once.
    #[test]
    fn the_frames_are_there_as_long_as_somebody_pays(ops in prop::collection::vec(op(), 1..40)) {
        let mut world = World::new();
        world.check();
        for op in ops {
            world.step(op);
            world.check();
        }
    }
}

#[test]
fn what_is_over_is_neither_mapped_nor_retained() {
    let mut life = ObjectLife::new();
    assert_eq!(life.release(), LetGo::MakerLeaves);
    assert_eq!((life.retain(), life.map(1, Payer::Known)), (Err(Over), Err(Over)));
    assert_eq!(life.leave(true), LetGo::Free);
    assert_eq!(life.release(), LetGo::Keep);
}
