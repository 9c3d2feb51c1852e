//! Which CPU a thread that becomes runnable goes to.

use crate::{CpuId, CpuSet};

/// What is known when a thread wakes or is made. All sets are snapshots and may be stale.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// CPUs the thread may run on that take threads at all.
    pub allowed: CpuSet,
    /// CPUs that announced they are idle.
    pub idle: CpuSet,
    /// CPUs with an interrupt on its way that they have not looked at.
    pub pending: CpuSet,
}

impl Situation {
    /// Idle CPUs that a wake can be sent to and that no earlier wake is on its way to.
    #[inline]
    pub(crate) fn free(&self) -> CpuSet {
        self.allowed.and(self.idle).minus(self.pending)
    }
}

/// Where a woken thread is queued: its target CPU if that is free, else the next free CPU
/// going round, else the target although it is busy. `None` if it may run nowhere.
///
/// A CPU that a wake is already on its way to is not free: a burst of wakes spreads over the
/// idle CPUs instead of piling up on the first.
#[inline]
pub fn woken(target: CpuId, at: &Situation) -> Option<CpuId> {
    let free = at.free();
    if free.contains(target) {
        return Some(target);
    }
    if let Some(cpu) = free.next_round(target) {
        return Some(cpu);
    }
    if at.allowed.contains(target) { Some(target) } else { at.allowed.next_round(target) }
}

/// Which other CPU to wake when the CPU a thread was queued on turned out to have a wake on its
/// way already: the next free one, which will find the thread when it looks for work.
#[inline]
pub fn second_wake(queued_on: CpuId, at: &Situation) -> Option<CpuId> {
    at.free().without(queued_on).next_round(queued_on)
}

/// Where a new thread is queued: an idle core, else an idle CPU whose sibling is busy, else the
/// creator's CPU. `None` if it may run nowhere.
///
/// `siblings` gives the CPUs of a core, the CPU itself included.
#[inline]
pub fn new_thread(
    creator: CpuId,
    at: &Situation,
    siblings: impl Fn(CpuId) -> CpuSet,
) -> Option<CpuId> {
    let free = at.free();
    let mut rest = free;
    let mut from = creator;
    while let Some(cpu) = rest.next_round(from) {
        if siblings(cpu).minus(at.idle).is_empty() {
            return Some(cpu);
        }
        rest = rest.without(cpu);
        from = cpu;
    }
    if let Some(cpu) = free.next_round(creator) {
        return Some(cpu);
    }
    if at.allowed.contains(creator) { Some(creator) } else { at.allowed.next_round(creator) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(n: usize) -> CpuId {
        CpuId::new(n).unwrap()
    }

    fn at(allowed: u128, idle: u128, pending: u128) -> Situation {
        Situation {
            allowed: CpuSet::from_bits(allowed),
            idle: CpuSet::from_bits(idle),
            pending: CpuSet::from_bits(pending),
        }
    }

    #[test]
    fn woken_table() {
        // (target, allowed, idle, pending) → where
        for (target, allowed, idle, pending, want) in [
            (1, 0b1111, 0b0010, 0, Some(1)),
            (1, 0b1111, 0b1100, 0, Some(2)),
            (3, 0b1111, 0b0011, 0, Some(0)),
            (1, 0b1111, 0b1110, 0b0010, Some(2)),
            (1, 0b1111, 0b1110, 0b0110, Some(3)),
            (1, 0b1111, 0b1110, 0b1110, Some(1)),
            (1, 0b1111, 0, 0, Some(1)),
            (1, 0b1101, 0b0010, 0, Some(2)),
            (3, 0b0101, 0, 0, Some(0)),
            (1, 0b0001, 0b1110, 0, Some(0)),
            (1, 0, 0b1111, 0, None),
            (127, 1 << 127 | 1, 1, 0, Some(0)),
        ] {
            let got = woken(cpu(target), &at(allowed, idle, pending)).map(CpuId::index);
            assert_eq!(got, want, "{target} {allowed:b} {idle:b} {pending:b}");
        }
    }

    #[test]
    fn a_burst_of_wakes_spreads_over_all_idle_cpus() {
        for cpus in [8, 16, 32, 128] {
            let mut situation = Situation {
                allowed: CpuSet::first_n(cpus),
                idle: CpuSet::first_n(cpus),
                pending: CpuSet::EMPTY,
            };
            let mut used = CpuSet::EMPTY;
            for _ in 0..cpus {
                let to = woken(cpu(0), &situation).unwrap();
                assert!(!used.contains(to));
                used = used.with(to);
                situation.pending = situation.pending.with(to);
            }
            assert_eq!(used, CpuSet::first_n(cpus));
            assert_eq!(second_wake(cpu(0), &situation), None);
        }
    }

    #[test]
    fn second_wake_is_another_free_cpu() {
        for (on, idle, pending, want) in [
            (0, 0b1111, 0b0001, Some(1)),
            (0, 0b1111, 0b0011, Some(2)),
            (3, 0b1111, 0b1000, Some(0)),
            (0, 0b0001, 0b0000, None),
        ] {
            let got = second_wake(cpu(on), &at(0b1111, idle, pending)).map(CpuId::index);
            assert_eq!(got, want);
        }
    }

    #[test]
    fn new_thread_table() {
        // Four cores of two threads: (0,1) (2,3) (4,5) (6,7).
        let siblings = |c: CpuId| CpuSet::from_bits(0b11 << (c.index() & !1));
        for (creator, allowed, idle, pending, want) in [
            // No idle CPU: beside the creator.
            (2, 0xff, 0, 0, Some(2)),
            // Only the sibling is idle: better than waiting behind the creator.
            (2, 0xff, 0b0000_1000, 0, Some(3)),
            // An idle core wins over the idle sibling, though it is farther.
            (2, 0xff, 0b1100_1000, 0, Some(6)),
            (2, 0xff, 0b0000_1011, 0, Some(0)),
            // A core with a wake on its way to one thread still has an idle other one.
            (2, 0xff, 0b1100_0000, 0b0100_0000, Some(7)),
            // The mask rules.
            (2, 0b0000_0001, 0b1111_0000, 0, Some(0)),
            (2, 0b1000_0000, 0b1100_0000, 0, Some(7)),
            (2, 0, 0xff, 0, None),
        ] {
            let got = new_thread(cpu(creator), &at(allowed, idle, pending), siblings);
            assert_eq!(got.map(CpuId::index), want, "{creator} {allowed:b} {idle:b}");
        }
    }
}
