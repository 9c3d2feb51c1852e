//! A fiber that overflows its stack stops the program with a clear word, and corrupts nothing.
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use fiber_rt::Runtime;

const CHILD: &str = "FIBER_OVERFLOW_CHILD";

fn recurse(depth: usize) -> usize {
    let room = std::hint::black_box([depth as u8; 512]);
    if std::hint::black_box(depth) == usize::MAX {
        return 0;
    }
    recurse(depth + 1) + usize::from(room[depth % 512])
}

#[test]
fn an_overflow_is_reported_by_its_name() {
    if std::env::var_os(CHILD).is_some() {
        let runtime = Runtime::builder().workers(1).stack_bytes(64 << 10).build().unwrap();
        let depth = runtime.run(|| recurse(0));
        unreachable!("{depth}");
    }
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this).env(CHILD, "1").arg("--nocapture").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let expected = "a fiber overflowed its stack of 65536 bytes";
    assert!(text.contains(expected), "{text} {:?}", output.status);
}

#[test]
fn a_panic_deep_in_a_fiber_unwinds_to_the_caller() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    fn deep(depth: u32) {
        struct Guard;
        impl Drop for Guard {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Ordering::Relaxed);
            }
        }
        let _guard = Guard;
        assert!(depth < 50, "deep enough");
        deep(std::hint::black_box(depth + 1));
    }
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| runtime.run(|| deep(0))));
    let payload = caught.unwrap_err();
    assert!(payload.downcast_ref::<&str>().is_some_and(|text| text.contains("deep enough")));
    assert_eq!(DROPPED.load(Ordering::Relaxed), 51, "every frame is unwound, once");
    // The runtime is as good as before.
    assert_eq!(runtime.run(|| 1), 1);
}
