//! digit_sum against a slow and obvious model.
use rules_core::digit_sum;
use test_property::prelude::*;

proptest! {
    #[test]
    fn digit_sum_is_the_sum(text in "[0-9a-z]{0,40}") {
        let model: u64 = text.chars().filter_map(|c| c.to_digit(10)).map(u64::from).sum();
        prop_assert_eq!(digit_sum(text.as_bytes()), model);
    }
}
