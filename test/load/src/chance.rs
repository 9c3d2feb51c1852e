//! Numbers by chance, the same for the same seed (SplitMix64).

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of a seed and of what it is drawn for: a run of a suite has its own.
    pub fn new(seed: u64, words: &[u64]) -> Chance {
        let mut chance = Chance(seed);
        for word in words {
            chance = Chance(chance.number() ^ word);
        }
        chance
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias of a remainder is below 2^-40 for any bound in use here.
        self.number() % bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence_and_each_run_has_its_own() {
        let draw = |seed, words: &[u64]| {
            let mut chance = Chance::new(seed, words);
            [chance.number(), chance.number(), chance.number()]
        };
        assert_eq!(draw(7, &[1, 2]), draw(7, &[1, 2]));
        assert_ne!(draw(7, &[1, 2]), draw(7, &[2, 1]));
        assert_ne!(draw(7, &[1, 2]), draw(8, &[1, 2]));
    }

    #[test]
    fn every_number_below_a_bound_comes_up() {
        let mut chance = Chance::new(1, &[]);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[chance.below(5) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
    }
}
