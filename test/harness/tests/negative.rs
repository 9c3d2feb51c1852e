//! The real runner against guests that misbehave: each is red, for the right reason.
//!
//! A wall clock appears in one role only: the guard that ends a guest which says nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs, thread};

/// Long enough for any guest here on a busy host.
const PATIENT: &str = "50";
/// For guests that never end by themselves: the guard is what is tested.
const SHORT: &str = "4";
/// Between two looks at a condition that will come true.
const LOOK_EVERY: Duration = Duration::from_millis(20);

struct Told {
    status: i32,
    class: String,
    codes: Vec<String>,
    stdout: String,
    out: PathBuf,
}

fn from_env(name: &str) -> PathBuf {
    let path = env::var_os(name).unwrap_or_else(|| panic!("{name} is not set"));
    env::current_dir().unwrap().join(path)
}

fn out_dir(name: &str) -> PathBuf {
    let out = PathBuf::from(env::var_os("TEST_TMPDIR").unwrap()).join(name);
    fs::create_dir_all(&out).unwrap();
    out
}

fn runner(out: &Path, behaviour: &str, words: &[&str]) -> Command {
    let mut command = Command::new(from_env("RUNNER"));
    command
        .args(["--boot", "program", "--lane", "racing", "--memory", "32", "--append"])
        .arg(format!("behave={behaviour}"))
        .args(["--guard-seconds", PATIENT, "--label", "//negative:test"])
        .arg("--program")
        .arg(from_env("GUEST"))
        .arg("--stub")
        .arg(from_env("STUB"))
        .arg("--bundle")
        .arg(from_env("BUNDLE"))
        .arg("--out")
        .arg(out)
        .args(words)
        .env("XML_OUTPUT_FILE", out.join("test.xml"));
    command
}

fn run(name: &str, behaviour: &str, words: &[&str]) -> Told {
    let out = out_dir(name);
    let output = runner(&out, behaviour, words).output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let verdict = fs::read_to_string(out.join("verdict.json")).unwrap();
    let verdict: serde_json::Value = serde_json::from_str(&verdict).unwrap();
    let reasons = verdict["reasons"].as_array().unwrap();
    Told {
        status: output.status.code().unwrap(),
        class: verdict["class"].as_str().unwrap().into(),
        codes: reasons.iter().map(|r| r["code"].as_str().unwrap().into()).collect(),
        stdout,
        out,
    }
}

/// One guest, one verdict: `name: behaviour, extra words => class, reasons`.
macro_rules! judged {
    ($($name:ident: $behaviour:literal, [$($word:expr),*] => $class:ident $codes:expr;)*) => {$(
        #[test]
        fn $name() {
            let codes: &[&str] = &$codes;
            let told = run(stringify!($name), $behaviour, &[$($word),*]);
            let status = match stringify!($class) {
                "green" => 0,
                "failed" => 1,
                _ => 2,
            };
            assert_eq!(
                (told.status, told.class.as_str(), told.codes.as_slice()),
                (status, stringify!($class), codes.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
                "{}",
                told.stdout,
            );
        }
    )*};
}

judged! {
    good_is_green: "good", [] => green [];
    good_is_green_in_the_deterministic_lane: "good", ["--lane", "deterministic"] => green [];
    a_skip_beside_a_pass_is_green: "skip-beside-pass", [] => green [];
    an_expected_panic_is_green: "panics", ["--expect", "panic"] => green [];
    an_expected_watchdog_is_green: "watchdog", ["--expect", "guest-timeout"] => green [];

    a_failing_test: "fails", [] => failed ["test-failed"];
    only_skips: "only-skips", [] => failed ["nothing-passed"];
    pass_without_records: "pass-without-records", [] => failed ["no-records"];
    ok_but_exit_fail: "ok-but-exit-fail", [] => failed ["exit-contradicts"];
    fails_but_exit_pass: "fails-but-exit-pass", [] => failed ["exit-contradicts", "test-failed"];
    hangs: "hangs", ["--guard-seconds", SHORT] => failed ["hang"];
    hangs_after_done: "hangs-after-done", ["--guard-seconds", SHORT] => failed ["hang"];
    panics: "panics", [] => failed ["panicked"];
    watchdog: "watchdog", [] => failed ["guest-timeout"];
    an_expected_panic_that_does_not_come: "good", ["--expect", "panic"] => failed ["not-as-expected"];
    an_expected_panic_in_the_wrong_test: "panics-early", ["--expect", "panic"] => failed ["not-run", "not-as-expected"];
    an_expected_panic_that_is_a_hang: "hangs", ["--expect", "panic", "--guard-seconds", SHORT] => failed ["hang"];
    an_expected_panic_that_is_a_triple_fault: "triple-faults", ["--expect", "panic"] => infrastructure ["status-zero"];
    wrong_count: "wrong-count", [] => failed ["wrong-count"];
    duplicate_id: "duplicate-id", [] => failed ["wrong-count", "duplicate-id"];
    run_without_outcome: "run-without-outcome", [] => failed ["wrong-count", "nothing-passed", "no-outcome"];
    planned_not_run: "planned-not-run", [] => failed ["not-run", "nothing-passed"];
    no_done: "no-done", [] => failed ["no-done"];
    no_plan: "no-plan", [] => failed ["no-plan", "wrong-count", "nothing-passed", "unplanned", "not-running"];
    after_done: "after-done", [] => failed ["after-done"];

    triple_faults: "triple-faults", [] => infrastructure ["status-zero"];
    resets_after_done: "resets-after-done", [] => infrastructure ["status-zero"];
    unknown_code: "unknown-code", [] => infrastructure ["unknown-status"];
    garbage: "garbage", [] => infrastructure ["garbage"];
    garbage_after: "garbage-after", [] => infrastructure ["garbage"];
    truncated_frame: "truncated-frame", [] => infrastructure ["truncated"];
    lost_record: "lost-record", [] => infrastructure ["out-of-sequence"];
    floods: "floods", ["--output-mib", "1"] => failed ["flood"];
    good_through_the_loader: "good", ["--boot", "direct"] => green [];
    panics_through_the_loader: "panics", ["--boot", "direct"] => failed ["panicked"];
    pass_without_records_through_the_loader: "pass-without-records", ["--boot", "direct"] => failed ["no-records"];
    triple_faults_through_the_loader: "triple-faults", ["--boot", "direct"] => infrastructure ["status-zero"];

    qemu_missing: "good", ["--qemu", "/nowhere/qemu"] => infrastructure ["not-started"];
    qemu_refuses: "good", ["--qemu-arg", "-no-such-option"] => infrastructure ["unknown-status"];
    qemu_quits: "good", ["--qemu", "/usr/bin/true"] => infrastructure ["status-zero"];
}

/// A stand-in for QEMU that notes its process id, does `more` and becomes QEMU.
fn wrapper(out: &Path, more: &str) -> PathBuf {
    let path = out.join("qemu.sh");
    let pid = out.join("pid");
    let text = format!(
        "#!/bin/sh\necho $$ > {pid}.new && mv {pid}.new {pid}\n{more}\nexec qemu-system-x86_64 \"$@\"\n",
        pid = pid.display()
    );
    // Renamed into place, so that no other thread's child holds it open for writing.
    fs::write(path.with_extension("new"), text).unwrap();
    fs::set_permissions(path.with_extension("new"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    path
}

#[test]
fn a_killed_qemu_is_an_infrastructure_failure() {
    let out = out_dir("killed");
    let qemu = wrapper(&out, "(sleep 1; kill -9 $$) >/dev/null 2>&1 &");
    let told = run("killed", "hangs", &["--qemu", qemu.to_str().unwrap()]);
    assert_eq!((told.status, told.codes.as_slice()), (2, ["killed".to_string()].as_slice()));
}

#[test]
fn a_killed_runner_takes_its_guest_along() {
    let out = out_dir("orphan");
    let qemu = wrapper(&out, "");
    let words = ["--qemu", qemu.to_str().unwrap()];
    let mut child = runner(&out, "hangs", &words).stdout(Stdio::null()).spawn().unwrap();
    // The guest's first console line says that QEMU is past its own set-up. No bound here:
    // Bazel's limit on the test is the guard.
    let console = out.join("console.log");
    while fs::read(&console).map_or(true, |text| text.is_empty()) {
        thread::sleep(LOOK_EVERY);
    }
    let pid = fs::read_to_string(out.join("pid")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", pid.trim()));
    // Gone, or a zombie nobody waits for.
    while fs::read_to_string(&status).is_ok_and(|text| !text.contains("State:\tZ")) {
        thread::sleep(LOOK_EVERY);
    }
}

#[test]
fn a_red_run_leaves_evidence() {
    let told = run("evidence", "fails", &[]);
    let read = |name: &str| fs::read_to_string(told.out.join(name)).unwrap();
    assert_eq!(read("console.log"), "behaviour: fails\n");
    assert!(read("command.txt").starts_with("qemu-system-x86_64 -no-user-config "));
    assert!(read("records.txt").contains("fail   two test/harness/guests/src/lib.rs:"));
    assert!(read("metrics.jsonl").contains("\"name\":\"answer\""));
    let xml = read("test.xml");
    assert!(xml.contains("name=\"one\"/>") && xml.contains("1 &gt; 2 does not hold: as it must"));
    for part in [
        "behaviour: fails\n",
        "because two failed [test-failed]",
        "command: qemu-system-x86_64",
        "replay:  ./bazelw test --nocache_test_results //negative:test",
    ] {
        assert!(told.stdout.contains(part), "{part:?} is not in\n{}", told.stdout);
    }
}

/// What was kept of where the CPUs were.
fn cpus(told: &Told) -> String {
    fs::read_to_string(told.out.join("cpus.txt")).unwrap_or_else(|e| panic!("{e}\n{}", told.stdout))
}

#[test]
fn a_guest_that_hangs_leaves_where_its_cpus_are() {
    let told = run("stuck", "hangs", &["--guard-seconds", SHORT]);
    let kept = cpus(&told);
    assert!(kept.starts_with("CPU 0: in the kernel, interrupts off, page tables 0x"), "{kept}");
    // The function it is in, and the one that called it.
    let place = |part: &str| kept.find(part).unwrap_or_else(|| panic!("{part} is not in\n{kept}"));
    assert!(place(" guest::machine::hang+0x") < place(" guest::behave+0x"), "{kept}");
    for part in ["--- info registers (CPU 0)\n", "RIP=", "--- info lapic (CPU 0)\n", "IRR"] {
        place(part);
    }
    assert!(told.stdout.contains(" guest::machine::hang+0x"), "{}", told.stdout);
    assert!(!told.out.join("core.elf").exists());
}

#[test]
fn a_kernel_that_hangs_is_named_by_the_symbols_it_is_given() {
    let kernel = from_env("KERNEL");
    let words =
        ["--boot", "direct", "--guard-seconds", SHORT, "--symbols", kernel.to_str().unwrap()];
    let kept = cpus(&run("stuck_kernel", "hangs", &words));
    assert!(kept.contains(" guest::machine::hang+0x"), "{kept}");
    let told = run("stuck_nameless", "hangs", &words[..4]);
    assert!(cpus(&told).contains(" ?\n"), "{}", told.stdout);
}

#[test]
fn symbols_of_another_build_name_nothing() {
    // The same kernel in another profile: its functions lie elsewhere.
    let other = from_env("OTHER_KERNEL");
    let words =
        ["--boot", "direct", "--guard-seconds", SHORT, "--symbols", other.to_str().unwrap()];
    let kept = cpus(&run("stuck_other", "hangs", &words));
    assert!(kept.contains("no names: the symbols are not those of the code it is in\n"), "{kept}");
    assert!(kept.contains(" ?\n") && !kept.contains("guest::"), "{kept}");
}

#[test]
fn every_cpu_is_looked_at_in_either_lane() {
    for lane in ["racing", "deterministic"] {
        let words = ["--cpus", "3", "--lane", lane, "--guard-seconds", SHORT];
        let kept = cpus(&run(&format!("stuck_{lane}"), "hangs", &words));
        for cpu in ["CPU 0: in the kernel", "CPU 1: halted", "CPU 2: halted"] {
            assert!(kept.contains(cpu), "{kept}");
        }
    }
}

#[test]
fn the_memory_of_a_guest_that_hangs_is_kept_if_that_is_asked_for() {
    let told = run("core", "hangs", &["--guard-seconds", SHORT, "--core"]);
    assert!(fs::read(told.out.join("core.elf")).unwrap().starts_with(b"\x7fELF"));
    assert!(told.stdout.contains("memory: gdb "), "{}", told.stdout);
}

#[test]
fn a_guest_that_ends_is_not_looked_at() {
    let told = run("ends", "fails", &[]);
    assert!(!told.out.join("cpus.txt").exists());
}

#[test]
fn an_emulator_that_does_not_answer_is_ended_all_the_same() {
    let out = out_dir("deaf");
    let deaf = out.join("deaf.sh");
    fs::write(deaf.with_extension("new"), "#!/bin/sh\nexec sleep 1000\n").unwrap();
    fs::set_permissions(deaf.with_extension("new"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::rename(deaf.with_extension("new"), &deaf).unwrap();
    let words = ["--qemu", deaf.to_str().unwrap(), "--guard-seconds", "1"];
    let told = run("deaf", "hangs", &words);
    assert_eq!((told.status, told.codes.as_slice()), (1, ["hang".to_string()].as_slice()));
    let kept = cpus(&told);
    assert!(kept.starts_with("the CPUs cannot be seen: QEMU does not answer"), "{kept}");
}

#[test]
fn a_wrong_description_is_not_a_verdict() {
    let out = out_dir("usage");
    let output = runner(&out, "good", &["--boot", "floppy"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("direct, cd, usb or program"));
}
