//! Names for what is under way: each names one use of one place, and never a later one.
//!
//! A name goes out with an operation and comes back with its completion, through hands that may
//! bring back an old one. It says which place, and which of its uses.

/// The most places there are.
pub const MAX_NAMES: usize = 64;

/// Bits of a name that count a place's uses; the top bit of a name is never set.
const USES: u32 = 0x7fff_ffff;

#[derive(Clone, Copy, Debug)]
struct Place<T> {
    uses: u32,
    value: Option<T>,
}

/// Places for values, each given out under a name.
#[derive(Debug)]
pub struct Names<T> {
    places: [Place<T>; MAX_NAMES],
    /// A bit for each place, set if it is free.
    free: u64,
    used: usize,
}

impl<T: Copy> Names<T> {
    /// So many places, at most [`MAX_NAMES`].
    pub const fn new(places: usize) -> Self {
        let free = if places >= MAX_NAMES { !0 } else { (1 << places) - 1 };
        Self { places: [Place { uses: 0, value: None }; MAX_NAMES], free, used: 0 }
    }

    /// Keeps `value` under a name; nothing if every place is taken.
    #[inline]
    pub fn insert(&mut self, value: T) -> Option<u64> {
        let index = self.free.trailing_zeros() as usize;
        let place = self.places.get_mut(index)?;
        self.free &= self.free - 1;
        self.used += 1;
        place.uses = place.uses.wrapping_add(1) & USES;
        place.value = Some(value);
        // From 1 on: 0 is the name of nothing.
        Some((index as u64 + 1) | u64::from(place.uses) << 32)
    }

    /// Takes what is kept under `name`; nothing for a name that was taken, or was never given.
    #[inline]
    pub fn remove(&mut self, name: u64) -> Option<T> {
        let index = (name as u32).wrapping_sub(1) as usize;
        let place = self.places.get_mut(index)?;
        if u64::from(place.uses) != name >> 32 {
            return None;
        }
        let value = place.value.take()?;
        self.free |= 1 << index;
        self.used -= 1;
        Some(value)
    }

    /// How many are kept.
    #[inline]
    pub const fn len(&self) -> usize {
        self.used
    }

    /// Whether none is kept.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.used == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::vec::Vec;
    use test_property::prelude::*;

    #[test]
    fn there_are_as_many_places_as_asked_for() {
        for places in [0, 1, 2, 63, 64, 1000] {
            let mut names = Names::new(places);
            let given: Vec<_> = core::iter::from_fn(|| names.insert(7u8)).collect();
            assert_eq!((given.len(), names.len()), (places.min(MAX_NAMES), given.len()));
            assert!(given.iter().all(|name| name >> 63 == 0 && *name != 0));
        }
    }

    #[test]
    fn strange_names_name_nothing() {
        let mut names = Names::new(4);
        let name = names.insert(1u8).unwrap();
        for strange in [0, 1, u64::MAX, name + 1, name - 1, name + (1 << 32), 1 << 63, 5, 65, 1000]
        {
            assert_eq!(names.remove(strange), None, "{strange:#x}");
        }
        assert_eq!(names.remove(name), Some(1));
        assert!(names.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// A map with names that are never given twice does the same.
        #[test]
        fn as_a_map(
            places in 1usize..10,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 1..400),
        ) {
            let mut names = Names::new(places);
            let mut model = HashMap::new();
            let mut given = Vec::new();
            for (value, (insert, which)) in steps.into_iter().enumerate() {
                if insert || given.is_empty() {
                    let name = names.insert(value);
                    prop_assert_eq!(name.is_some(), model.len() < places);
                    if let Some(name) = name {
                        prop_assert!(!given.contains(&name), "a name is given once");
                        given.push(name);
                        model.insert(name, value);
                    }
                } else {
                    // Old ones too.
                    let name = given[which.index(given.len())];
                    prop_assert_eq!(names.remove(name), model.remove(&name));
                }
                prop_assert_eq!(names.len(), model.len());
            }
        }
    }
}
