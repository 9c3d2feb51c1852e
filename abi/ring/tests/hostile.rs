//! The kernel's half over memory that lies at any read.
use abi_ring_testing::hostile_session;
use test_property::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn no_bytes_break_the_kernels_half(script in prop::collection::vec(any::<u8>(), 0..2000)) {
        hostile_session(&script);
    }

    /// Mostly true reads: the session gets deep before the lie.
    #[test]
    fn no_rare_lie_breaks_the_kernels_half(
        script in prop::collection::vec(prop_oneof![20 => 0_u8..128, 1 => any::<u8>()], 0..4000),
    ) {
        hostile_session(&script);
    }
}
