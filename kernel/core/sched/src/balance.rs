//! Work moves between CPUs: an idle CPU takes some, a crowded CPU gives some away.
//!
//! An idle CPU chooses a victim by what the CPUs publish and locks only that one. A busy CPU
//! cannot be counted on to look around: with one runnable thread it takes no slice interrupt.
//! So it is the crowded CPU that looks for a CPU with less to do, when it chooses what to run
//! and a slice has passed since the last look. Not only at slice ends: a crowd of threads that
//! each run for less than a slice has none. When loads differ by no more than one thread, moving
//! one only moves the crowd; done in turn, CPU after CPU and longest resident first, that is what
//! gives every thread the same time.
//!
//! Decided in ADR 121.

use crate::place::Situation;
use crate::{CpuId, CpuSet, Hint, MayRun, Ordered, Queue};
use core_sched_policy::{Policy, QUANTUM_NS};

/// How long a crowd stays on one CPU before it moves on to the next, in ns.
///
/// Ten slices: a moved thread's cold caches are paid for about ten times over, and a second
/// still sees ten moves.
pub const BALANCE_PERIOD_NS: u64 = 10 * QUANTUM_NS;

/// How often a crowded CPU looks around, at most, in ns.
pub const LOOK_PERIOD_NS: u64 = QUANTUM_NS;

/// How many threads are given away after one look, at most: what one CPU can do to others at a
/// time, while a crowd of a hundred is still gone within a second.
pub const MOVES_PER_LOOK: usize = 4;

/// How many waiting threads are looked at for one to move: bounds the work under the lock.
const MOVE_SCAN: usize = 8;

/// A thread to be moved, and where to.
#[must_use = "the thread still has to be moved"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surplus<I> {
    /// The thread, waiting in the queue that was asked.
    pub item: I,
    /// The CPU it should go to.
    pub to: CpuId,
}

/// The CPU an idle one takes a thread from: the one whose first waits the longest past its
/// finish, the lower number among equals. Looks at each CPU's hint once.
#[inline]
pub fn victim(thief: CpuId, cpus: CpuSet, hint: impl Fn(CpuId) -> Hint) -> Option<CpuId> {
    let mut best: Option<(i64, CpuId)> = None;
    for cpu in cpus.without(thief).iter() {
        let h = hint(cpu);
        if h.waiting > 0 && best.is_none_or(|(lateness, _)| h.lateness_ns > lateness) {
            best = Some((h.lateness_ns, cpu));
        }
    }
    best.map(|(_, cpu)| cpu)
}

/// The idle CPUs to be told when a crowded one has so many waiting: each will come for one. All
/// of them at once, where giving threads away one after the other would let the last ones idle.
#[inline]
pub fn helpers(at: &Situation, waiting: u32) -> CpuSet {
    let mut free = at.free();
    let mut told = CpuSet::EMPTY;
    for _ in 0..waiting {
        let Some(cpu) = free.first() else { break };
        told = told.with(cpu);
        free = free.without(cpu);
    }
    told
}

impl<P: Policy, O: Ordered> Queue<P, O> {
    /// The thread an idle CPU takes from here: the first that may go.
    pub fn to_steal(&self, mut may_go: impl FnMut(O::Item) -> bool) -> Option<O::Item> {
        let mut next = self.order.first();
        for _ in 0..MOVE_SCAN {
            let (item, _) = next?;
            if may_go(item) {
                return Some(item);
            }
            next = self.order.after(item);
        }
        None
    }

    /// Before a choice: whether it is time for this CPU to look for one with less to do.
    #[inline]
    pub fn is_look_due(&self, now_ns: u64) -> bool {
        self.waiting != 0 && self.is_look_near(now_ns)
    }

    /// Whether it is so if somebody waits.
    #[inline]
    pub fn is_look_near(&self, now_ns: u64) -> bool {
        now_ns.wrapping_sub(self.looked_ns) >= LOOK_PERIOD_NS
    }

    /// This CPU looks for one with less to do; the next time comes a period later.
    #[inline]
    pub fn looked_around(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
    }

    /// When a look is due: whether this CPU is crowded enough to give a thread away, which, and
    /// to whom. `cpus` are those that take threads; `may_go` says `Later` of a thread whose stack is
    /// still in use.
    pub fn surplus(
        &self,
        now_ns: u64,
        cpus: CpuSet,
        hint: impl Fn(CpuId) -> Hint,
        mut may_go: impl FnMut(O::Item, CpuId) -> MayRun,
    ) -> Option<Surplus<O::Item>> {
        if self.waiting == 0 {
            return None;
        }
        let (to, their_load) = self.least_loaded(cpus, hint)?;
        let excess = self.load.checked_sub(their_load)?;
        let mut oldest: Option<(u64, u64, O::Item)> = None;
        // Since when those are here that cannot go at this moment.
        let mut staying_ns = self.current.map_or(u64::MAX, |current| current.moved_ns);
        let mut next = self.order.first();
        for _ in 0..MOVE_SCAN {
            let Some((item, entry)) = next else { break };
            let weight = u64::from(entry.weight.get());
            if weight <= excess && oldest.is_none_or(|(moved_ns, ..)| entry.moved_ns < moved_ns) {
                match may_go(item, to) {
                    MayRun::Yes => oldest = Some((entry.moved_ns, weight, item)),
                    MayRun::Later => staying_ns = staying_ns.min(entry.moved_ns),
                    MayRun::No(_) => {}
                }
            }
            next = self.order.after(item);
        }
        let (moved_ns, weight, item) = oldest?;
        // A move that makes loads more equal is made at once. One that only moves the crowd has
        // its time, and it is the longest resident's turn and nobody else's; if that one is
        // current or was a moment ago, its turn comes at the next slice end.
        let evens_out = excess >= 2 * weight;
        let is_time = now_ns.saturating_sub(self.moved_ns) >= BALANCE_PERIOD_NS;
        (evens_out || is_time && moved_ns <= staying_ns).then_some(Surplus { item, to })
    }

    /// The CPU with the least load, the next one going round among equals.
    fn least_loaded(&self, cpus: CpuSet, hint: impl Fn(CpuId) -> Hint) -> Option<(CpuId, u64)> {
        let mut best: Option<(CpuId, u64)> = None;
        let mut rest = cpus.without(self.cpu);
        let mut from = self.cpu;
        while let Some(cpu) = rest.next_round(from) {
            let load = hint(cpu).load;
            if best.is_none_or(|(_, least)| load < least) {
                best = Some((cpu, load));
            }
            rest = rest.without(cpu);
            from = cpu;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_as_many_idle_cpus_as_threads_wait() {
        for (allowed, idle, pending, waiting, want) in [
            (0b1111, 0b1110, 0b0000, 2, 0b0110),
            (0b1111, 0b1110, 0b0010, 2, 0b1100),
            (0b1111, 0b1110, 0b0000, 9, 0b1110),
            (0b0011, 0b1110, 0b0000, 9, 0b0010),
            (0b1111, 0b0000, 0b0000, 9, 0b0000),
            (0b1111, 0b1111, 0b0000, 0, 0b0000),
        ] {
            let at = Situation {
                allowed: CpuSet::from_bits(allowed),
                idle: CpuSet::from_bits(idle),
                pending: CpuSet::from_bits(pending),
            };
            assert_eq!(helpers(&at, waiting).to_bits(), want);
        }
    }
}
