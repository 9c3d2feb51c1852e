//! Panics under load, where they unwind. All other load is in //test/fiber.
use fiber::{Runtime, nursery, yield_now};

/// A fixed sequence per seed, so that a run can be told by it.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn maybe_yield(&mut self) {
        if self.below(4) == 0 {
            let _ = yield_now();
        }
    }
}

fn on_each(f: impl Fn(u64) + Sync) {
    for workers in [1, 2, 4] {
        let runtime = Runtime::builder().workers(workers).on_stall(|_| {}).build().unwrap();
        for seed in 1..=3 {
            runtime.run(|| f(seed * 7919 + workers as u64));
        }
        let stats = runtime.stats();
        let sum = |f: fn(&fiber::WorkerStats) -> u64| stats.workers.iter().map(f).sum::<u64>();
        let ends = sum(|w| w.finishes + w.yields + w.parks);
        assert_eq!(sum(|w| w.dispatches), ends, "each run ended in one way");
        assert!(runtime.dump().fibers.is_empty(), "{}", runtime.dump());
    }
}

#[test]
fn a_tree_of_nurseries_with_panics_and_results() {
    fn grow(depth: u32, random: &mut Random) -> u64 {
        if depth == 0 {
            random.maybe_yield();
            return 1;
        }
        let seeds =
            [random.below(1 << 30) + 1, random.below(1 << 30) + 1, random.below(1 << 30) + 1];
        nursery(|n| {
            let children = seeds.map(|seed| n.spawn(move || grow(depth - 1, &mut Random(seed))));
            let broken = n.spawn(|| std::panic::panic_any(depth));
            assert!(broken.join().is_err());
            children.into_iter().map(|child| child.join().unwrap()).sum()
        })
    }
    std::panic::set_hook(Box::new(|_| {}));
    on_each(|seed| assert_eq!(grow(5, &mut Random(seed)), 243));
    let _ = std::panic::take_hook();
}
