//! Objects that wait for their grace period, oldest first.

use crate::{Grace, Quiescence};

/// At most `N` objects that nobody can find and somebody may still look at. One CPU's own.
#[derive(Debug)]
pub struct Limbo<T, const N: usize> {
    slots: [Option<(Grace, T)>; N],
    first: usize,
    len: usize,
}

/// There is no room; the object comes back. Wait for a grace period and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T, const N: usize> Limbo<T, N> {
    /// Nothing waits.
    pub const fn new() -> Self {
        Self { slots: [const { None }; N], first: 0, len: 0 }
    }

    /// Keeps an object until `grace`, which began after those before, is over.
    pub fn push(&mut self, grace: Grace, object: T) -> Result<(), Full<T>> {
        if self.len == N {
            return Err(Full(object));
        }
        match self.slots.get_mut((self.first + self.len) % N.max(1)) {
            Some(slot) => {
                *slot = Some((grace, object));
                self.len += 1;
                Ok(())
            }
            None => Err(Full(object)),
        }
    }

    /// The oldest object, if its grace period is over.
    pub fn pop<const CPUS: usize>(&mut self, quiescence: &Quiescence<CPUS>) -> Option<T> {
        let slot = self.slots.get_mut(self.first)?;
        let (grace, _) = slot.as_ref()?;
        if !quiescence.is_over(*grace) {
            return None;
        }
        let (_, object) = slot.take()?;
        self.first = (self.first + 1) % N;
        self.len -= 1;
        Some(object)
    }

    /// How many wait.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none does.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T, const N: usize> Default for Limbo<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn objects_leave_in_order_when_their_time_comes() {
        let q = Quiescence::<1>::new();
        let mut limbo = Limbo::<u32, 2>::new();
        for round in 0..5 {
            q.enter(0);
            limbo.push(q.begin(), round).unwrap();
            limbo.push(q.begin(), round + 100).unwrap();
            assert_eq!(limbo.push(q.begin(), 7), Err(Full(7)));
            assert_eq!((limbo.pop(&q), limbo.len()), (None, 2));
            q.exit(0);
            assert_eq!(limbo.pop(&q), Some(round));
            assert_eq!(limbo.pop(&q), Some(round + 100));
            assert_eq!(limbo.pop(&q), None);
            assert!(limbo.is_empty());
        }
        assert_eq!(Limbo::<u32, 0>::new().push(q.begin(), 1), Err(Full(1)));
    }
}
