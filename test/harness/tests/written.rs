//! What a run leaves behind: JUnit XML, JSON, the summary.

use harness::judge::{Ending, Expect, Verdict, judge};
use harness::options::{self, Run};
use harness::transcript::{Count, Event, Failure, Metric};
use harness::{junit, tell};
use std::time::Duration;

fn run() -> Run {
    let words = ["--boot", "program", "--program", "p", "--label", "//t:x", "--profile", "checked"];
    options::parse(words.map(Into::into)).unwrap()
}

fn verdict(last: Option<Event>, status: i32) -> Verdict {
    let plan = |(index, id): (u32, &str)| Event::Plan { index, total: 3, id: id.into() };
    let mut events: Vec<Event> = (0..).zip(["a", "b", "c"]).map(plan).collect();
    events.push(Event::Run { id: "a".into() });
    let metric = Metric { name: "cost".into(), value: u64::MAX, unit: "ns".into() };
    events.push(Event::Metric { id: "a".into(), metric });
    events.push(Event::Ok { id: "a".into() });
    events.push(Event::Run { id: "b".into() });
    events.push(Event::Skip { id: "b".into(), reason: "one \"CPU\" & <no> more".into() });
    events.push(Event::Run { id: "c".into() });
    events.extend(last);
    judge(Expect::Pass, &Ending::Status(status), &events)
}

fn failed() -> Verdict {
    let failure = Failure { file: "k.rs".into(), line: 7, message: "1 < 0 \u{1b}[31m".into() };
    verdict(Some(Event::Fail { id: "c".into(), failure }), 0x23)
}

#[test]
fn junit_has_one_testcase_per_id_and_one_for_the_verdict() {
    let xml =
        junit::xml("//t:x", &failed(), Duration::from_millis(1500), "last\u{0}words & <more>");
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="//t:x" tests="4" failures="1" errors="1" skipped="1" time="1.500">
    <testcase classname="//t:x" name="a"/>
    <testcase classname="//t:x" name="b">
      <skipped message="one &quot;CPU&quot; &amp; &lt;no&gt; more"/>
    </testcase>
    <testcase classname="//t:x" name="c">
      <failure message="k.rs:7: 1 &lt; 0 �[31m"/>
    </testcase>
    <testcase classname="//t:x" name="verdict">
      <error message="the guest did not say that it was done; c failed"/>
    </testcase>
    <system-out>last�words &amp; &lt;more&gt;</system-out>
  </testsuite>
</testsuites>"#;
    assert_eq!(xml, expected);
}

#[test]
fn a_green_run_has_only_its_tests() {
    let events = [
        Event::Plan { index: 0, total: 1, id: "a".into() },
        Event::Run { id: "a".into() },
        Event::Ok { id: "a".into() },
        Event::Done(Count { passed: 1, failed: 0, skipped: 0 }),
    ];
    let verdict = judge(Expect::Pass, &Ending::Status(0x21), &events);
    let xml = junit::xml("//t:x", &verdict, Duration::ZERO, "text");
    assert_eq!(xml.matches("<testcase").count(), 1);
    assert!(!xml.contains("text"));
    let told = tell::summary(&run(), &verdict, Duration::ZERO, "qemu", "console", "");
    assert_eq!(told, "ok      a\n//t:x: green: 1 passed, 0 failed, 0 skipped (0.00 s)\n");
}

#[test]
fn unfinished_tests_are_errors() {
    let xml = junit::xml("//t:x", &verdict(None, 0x25), Duration::ZERO, "");
    assert!(xml.contains("<error message=\"began and never ended\"/>"), "{xml}");
    assert!(xml.contains("the kernel panicked while c ran"), "{xml}");
    let xml = junit::xml("//t:x", &verdict(None, 0), Duration::ZERO, "");
    assert!(xml.contains("infrastructure failure: QEMU ended with status 0"), "{xml}");
}

#[test]
fn json() {
    let json = tell::verdict_json(&run(), &failed(), Duration::from_millis(12));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["class"], "failed");
    assert_eq!(value["reasons"][0]["code"], "no-done");
    assert_eq!((&value["passed"], &value["failed"]), (&1.into(), &1.into()));

    let lines = tell::metrics_json_lines(&run(), &failed());
    let value: serde_json::Value = serde_json::from_str(lines.trim_end()).unwrap();
    assert_eq!(value["value"], u64::MAX);
    assert_eq!((&value["test"], &value["profile"]), (&"a".into(), &"checked".into()));
}

#[test]
fn a_red_summary_has_the_last_lines_and_the_replay_command() {
    let console: String = (0..100).map(|n| format!("line {n}\n")).collect();
    let tail = tell::tail(console.as_bytes());
    let told = tell::summary(&run(), &failed(), Duration::ZERO, "qemu -x", &tail, "qemu: hm\n");
    for part in [
        "FAIL    c: k.rs:7: 1 < 0",
        "line 99\n",
        "line 60\n",
        "qemu: hm",
        "because c failed [test-failed]",
        "command: qemu -x\n",
        "replay:  ./bazelw test --nocache_test_results //t:x\n",
    ] {
        assert!(told.contains(part), "{part} is not in\n{told}");
    }
    assert!(!told.contains("line 59\n"));
    let sandboxed = "/x/sandbox/1/execroot/capos/bazel-out/k8-opt/testlogs/t/x/test.outputs";
    let seen = tell::as_seen_from_the_workspace(sandboxed.as_ref());
    assert_eq!(seen, "bazel-testlogs/t/x/test.outputs");
    assert_eq!(tell::as_seen_from_the_workspace("/tmp/o".as_ref()), "/tmp/o");
    assert_eq!(tell::tail(b"a\xff\nb"), "a\u{fffd}\nb");
    assert_eq!(tell::tail(b"\x1b[2J\x1b[001;001Ha\tb\r\nc\x07\x1b"), "a\tb\nc");
}
