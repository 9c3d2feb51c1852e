//! Limits of the system are told by their names; a report that panics ends nothing.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fiber_rt::{Runtime, blocking, scope, sleep};

const CHILD: &str = "FIBER_LIMITS_CHILD";

/// What `run` says when there is no stack for its fiber.
fn refusal(runtime: &Runtime) -> String {
    let payload = catch_unwind(AssertUnwindSafe(|| runtime.run(|| ()))).unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

/// Runs the test again, alone in a process of its own; what it says there.
fn in_a_child(test: &str) -> String {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--exact", test, "--nocapture", "--test-threads=1"];
    let output = Command::new(this).env(CHILD, test).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// How often the monitor has looked.
fn looks(runtime: &Runtime) -> u64 {
    let scaling = runtime.stats().scaling;
    scaling.positive_samples + scaling.zero_samples + scaling.negative_samples
}

/// Waits until the only worker and the monitor have begun: a thread's first memory is not what a test of
/// limits is about.
fn await_threads(runtime: &Runtime) {
    let has_slept = || runtime.stats().workers.iter().any(|worker| worker.sleeps > 0);
    while !has_slept() || looks(runtime) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Lets the process have so many bytes of addresses more, and none after that.
fn leave_addresses(bytes: u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let most = (pages * 4096) + bytes;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: of this process, which ends soon.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
}

#[test]
fn a_size_beyond_all_memory_is_refused() {
    for bytes in [1 << 58, usize::MAX - 100, usize::MAX] {
        let runtime = Runtime::builder().workers(1).stack_bytes(bytes).build().unwrap();
        let text = refusal(&runtime);
        assert!(text.contains("no memory for fiber stacks (error 12)"), "{text}");
    }
}

#[test]
fn a_limit_on_addresses_is_not_one_on_mappings() {
    if !is_child() {
        let text = in_a_child("a_limit_on_addresses_is_not_one_on_mappings");
        assert!(text.contains("no memory for fiber stacks (error 12)"), "{text}");
        assert!(!text.contains("vm.max_map_count"), "{text}");
        return;
    }
    let runtime = Runtime::builder().workers(1).stack_bytes(1 << 20).build().unwrap();
    await_threads(&runtime);
    leave_addresses(16 << 20);
    eprintln!("{}", refusal(&runtime));
}

#[test]
fn that_there_is_no_thread_for_a_worker_is_told_once() {
    if !is_child() {
        let text = in_a_child("that_there_is_no_thread_for_a_worker_is_told_once");
        assert_eq!(text.matches("no worker thread could be started").count(), 1, "{text}");
        return;
    }
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.run(|| {
        // The monitor has begun, and so has this worker: nobody gives addresses back from here on.
        while looks(&runtime) == 0 {
            sleep(Duration::from_millis(1)).unwrap();
        }
        leave_addresses(0);
        // What is left is less than the stack of a thread.
        let map = || {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping, which nobody uses.
            unsafe { libc::mmap(std::ptr::null_mut(), 1 << 20, libc::PROT_NONE, flags, -1, 0) }
        };
        while map() != libc::MAP_FAILED {}
        let before = looks(&runtime);
        // The monitor would start a worker in this one's place, at every look.
        blocking(|| {
            while looks(&runtime) < before + 5 {
                std::thread::yield_now();
            }
        });
    });
}

#[test]
fn the_limit_on_mappings_is_told_by_its_name() {
    if !is_child() {
        let text = in_a_child("the_limit_on_mappings_is_told_by_its_name");
        assert!(text.contains("raise vm.max_map_count"), "{text}");
        return;
    }
    let runtime = Runtime::builder().workers(1).build().unwrap();
    await_threads(&runtime);
    let most = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let most: usize = most.trim().parse().unwrap();
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let map = |number: usize| {
        // Neighbours with other rights are mappings of their own.
        let rights = if number.is_multiple_of(2) { libc::PROT_NONE } else { libc::PROT_READ };
        // SAFETY: a new mapping, which nobody uses.
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0) != libc::MAP_FAILED }
    };
    assert!(!(0..2 * most).all(map), "there is a limit");
    eprintln!("{}", refusal(&runtime));
}

#[test]
fn a_report_of_a_stall_that_panics_does_not_end_the_monitor() {
    static REPORTS: AtomicUsize = AtomicUsize::new(0);
    let runtime = Runtime::builder()
        .workers(1)
        .stall_after(Duration::from_millis(1))
        .on_stall(|_| {
            REPORTS.fetch_add(1, Ordering::Relaxed);
            std::panic::panic_any("not again");
        })
        .build()
        .unwrap();
    for round in 1..=2 {
        let ran = AtomicUsize::new(0);
        runtime.run(|| {
            scope(|s| {
                while REPORTS.load(Ordering::Relaxed) < round {
                    std::thread::yield_now();
                }
                // Only the monitor starts the worker that runs this.
                drop(s.spawn(|| ran.fetch_add(1, Ordering::Relaxed)).unwrap());
                while ran.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
            });
        });
    }
}
