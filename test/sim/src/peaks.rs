//! A number that changes, and the greatest it was since any time.

/// What a number was before each change that can still be the greatest: an earlier one that was no greater is
/// in every look that sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peaks {
    /// When, and what it was before: later ones are less.
    before: Vec<(u64, u64)>,
}

impl Peaks {
    /// The number changes at `at_ns`, which is not before the last change.
    pub(crate) fn changes(&mut self, at_ns: u64, was: u64) {
        while self.before.pop_if(|last| last.1 <= was).is_some() {}
        self.before.push((at_ns, was));
    }

    /// The greatest it was since a time; it is `now`.
    pub(crate) fn most_since(&self, from_ns: u64, now: u64) -> u64 {
        let first = self.before.partition_point(|change| change.0 < from_ns);
        self.before.get(first).map_or(now, |change| change.1.max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn it_is_the_greatest_of_all_changes_since() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let (mut peaks, mut all) = (Peaks::default(), Vec::new());
            let (mut now_ns, mut number) = (0, 5);
            for _ in 0..100 {
                now_ns += rng.below(3);
                peaks.changes(now_ns, number);
                all.push((now_ns, number));
                number = rng.below(20);
                for from_ns in 0..=now_ns + 1 {
                    let since = all.iter().filter(|change| change.0 >= from_ns);
                    let most = since.map(|change| change.1).fold(number, u64::max);
                    assert_eq!(peaks.most_since(from_ns, number), most, "{all:?} from {from_ns}");
                }
            }
        }
    }
}
