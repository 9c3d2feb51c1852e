//! Property tests whose failures are kept.
//!
//! It is [proptest], but for its memory: every test tries the seeds kept for its source file
//! before it makes up new cases, and a new failure says which line to add to which file. Tests
//! use it as they would use proptest:
//!
//! ```ignore
//! use test_property::prelude::*;
//!
//! proptest! {
//!     #![proptest_config(ProptestConfig::with_cases(400))]
//!     #[test]
//!     fn holds(n in 0u32..10) { prop_assert!(n < 10); }
//! }
//! ```
//!
//! Contract:
//! - the seeds of `<crate>/tests/x.rs` are in `<crate>/proptest-regressions/tests/x.txt`, which the
//!   build rule gives to the crate's tests; all of them come first, in every test of that source
//!   file, whatever the configuration says about persistence;
//! - a line that is no seed fails the test: it would be replayed by nobody;
//! - `bazel run` of a test writes the line into the workspace. `bazel test` cannot, so it prints
//!   the command that does, and leaves the line among the test's outputs.
//!
//! No BUILD file can name proptest itself; `platforms/rust.bzl` refuses it.
//!
//! Decided in ADR 158.

mod file;
mod kept;

pub use file::{Line, file_of};
pub use kept::{Kept, kept};
#[doc(hidden)]
pub use proptest as inner;

/// What a property test imports.
pub mod prelude {
    pub use crate::proptest;
    pub use proptest::prelude::*;
}

/// Defines property tests, or runs one at once, as `proptest::proptest!` does; with kept seeds.
#[macro_export]
macro_rules! proptest {
    (#![proptest_config($config:expr)] $($tests:tt)*) => {
        $crate::inner::proptest! { #![proptest_config($crate::kept($config))] $($tests)* }
    };
    (#[$($attribute:tt)*] $($tests:tt)*) => {
        $crate::proptest! {
            #![proptest_config($crate::prelude::ProptestConfig::default())]
            #[$($attribute)*] $($tests)*
        }
    };
    (|$($closure:tt)*) => {
        $crate::proptest!($crate::prelude::ProptestConfig::default(), |$($closure)*)
    };
    ($config:expr, $($closure:tt)*) => {
        $crate::inner::proptest!($crate::kept($config), $($closure)*)
    };
}
