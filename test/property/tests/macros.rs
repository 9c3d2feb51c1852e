//! The macro, in each of its forms, tries the seeds that are checked in beside this file.
use std::sync::Mutex;
use test_property::prelude::*;

/// What the kept seed makes of `any::<u64>()`.
const KEPT: u64 = 14_168_252_215_487_097_697;

/// Whether the kept number was the first one of a test.
struct First(Mutex<Option<u64>>);

impl First {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn see(&self, n: u64) -> Result<(), TestCaseError> {
        let first = *self.0.lock().unwrap().get_or_insert(n);
        prop_assert_eq!(first, KEPT, "the first one is not the kept one");
        Ok(())
    }
}

static CONFIGURED: First = First::new();
static USUAL: First = First::new();

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3) })]
    /// Even if the configuration wants no seeds.
    #[test]
    fn configured(n in any::<u64>()) {
        CONFIGURED.see(n)?;
    }
}

proptest! {
    /// Two tests of one source have the same seeds.
    #[test]
    fn usual(n in any::<u64>()) {
        USUAL.see(n)?;
    }
}

#[test]
fn closures() {
    let first = First::new();
    proptest!(|(n in any::<u64>())| first.see(n)?);
    let first = First::new();
    proptest!(ProptestConfig::with_cases(2), |(n in any::<u64>())| first.see(n)?);
}
