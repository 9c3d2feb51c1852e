//! Timer.wallClock: the date.

use schema::timer;
use test_kit::{Outcome, check, require_ok};

use crate::Run;

/// 2020 and 2100, in seconds since 1970.
const BELIEVABLE: core::ops::Range<u64> = 1_577_836_800..4_102_444_800;

/// The date goes on with the clock, on whatever CPU it is asked for.
pub fn wall_clock(t: &mut Run<'_>) -> Outcome {
    let mut timer = timer::Client::new(t.env.program.io().caller(), t.env.program.timer);
    let first = require_ok!(t, timer.wall_clock());
    check!(t, BELIEVABLE.contains(&first.unix_seconds), "{first:?}");
    check!(t, first.nanoseconds < 1_000_000_000, "{first:?}");
    let since =
        |at: timer::WallClockResults| at.unix_seconds * 1_000_000_000 + u64::from(at.nanoseconds);
    for ns in [0, 1_000_000, 40_000_000] {
        let before = (require_ok!(t, timer.wall_clock()), require_ok!(t, timer.now()).ns);
        t.env.program.sleep(ns);
        let after = (require_ok!(t, timer.now()).ns, require_ok!(t, timer.wall_clock()));
        let passed = since(after.1) - since(before.0);
        // The two looks at the one clock lie within the two looks at the other.
        check!(t, passed >= after.0 - before.1, "{passed} ns, {before:?} to {after:?}");
    }
    Ok(())
}
