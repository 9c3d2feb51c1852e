//! The shell as a person meets it: lines, what they show, and a prompt after each.

#[path = "lines/script.rs"]
mod script;

use script::{PROGRAMS, Script, session};
use shell_core::commands::WELCOME;
use shell_core::shell::PROMPT;
use shell_core::{COMMANDS, Shell};
use test_property::prelude::*;

/// A session shows each of these, in this order.
#[track_caller]
fn shows(typed: &str, texts: &[&str]) -> i64 {
    let (shown, code) = session(typed);
    let mut rest = &shown[..];
    for text in texts {
        let at = rest.find(text).unwrap_or_else(|| panic!("no {text:?} in\n{shown}"));
        rest = &rest[at + text.len()..];
    }
    code
}

#[test]
fn the_first_screen_has_six_lines_and_a_prompt() {
    assert_eq!(WELCOME.trim_start().lines().count() + 1, 6);
    assert!(WELCOME.lines().all(|line| line.len() < 90));
    let code = shows("", &["This is capOS", "help", "demo", "poweroff", "Ctrl-A X", PROMPT]);
    assert_eq!(code, 0);
}

#[test]
fn every_command_says_what_it_is_for_and_its_example_is_understood() {
    for command in COMMANDS {
        let name = command.name;
        assert!(command.help.len() > 10 && !command.help.ends_with('.'), "{name}");
        assert!(command.example.contains(name), "{name}");
        shows("help\r", &[name, command.help]);
        shows(&format!("help {name}\r"), &[command.help, command.example]);
        assert_eq!(shows(&format!("{name} too 'many & words' here\r"), &[PROMPT]), 1, "{name}");
    }
    for command in
        COMMANDS.iter().filter(|command| command.takes != shell_core::commands::Takes::Job)
    {
        let line = command.example.replace("primes", "hello");
        let code = shows(&format!("{line}\rq"), &[PROMPT]);
        // The script's client ends with the key as its code.
        let expected = match &line[..] {
            "exit 3" => 3,
            "demo" => 1,
            _ => 0,
        };
        assert_eq!(code, expected, "{line}");
    }
}

#[test]
fn a_program_is_run_by_name_and_its_end_is_said_in_words() {
    for line in ["run hello you", "hello you"] {
        assert_eq!(shows(&format!("{line}\r"), &["hello, you\n", "hello: ended well"]), 0);
    }
    // Half a line is ended before anything else is said.
    assert_eq!(shows("noise\r", &["half ", "\nnoise: ended with code 7\n", PROMPT]), 7);
}

#[test]
fn ctrl_c_ends_the_program_and_then_there_is_a_prompt() {
    let (shown, code) = session("run forever\r\x03hello\r");
    assert!(shown.contains("forever: killed, with code 130"), "{shown}");
    assert!(shown.contains("hello: ended well"), "{shown}");
    assert_eq!(code, 0);
    assert_eq!(shows("run forever\r", &["^C", "forever: killed"]), 1);
}

#[test]
fn what_is_typed_ahead_is_the_programs_and_then_the_shells() {
    assert_eq!(
        shows("keys\rAuptime\r", &["keys: ended with code 65", "up for 1:02:05.5, on 2 CPUs"]),
        0
    );
    // In the background a program waits for its turn.
    assert_eq!(shows("keys &\rwait 1\rA", &["[1] keys runs", "keys: ended with code 65"]), 65);
    shows("keys &\rmem\rkill 1\rjobs\r", &["keys runs", "keys: killed"]);
}

#[test]
fn jobs_are_listed_waited_for_and_ended() {
    shows(
        "forever &\rjobs\rmem\rkill 1\rjobs\rwait 1\rjobs\r",
        &[
            "[1] forever runs",
            "[1] forever: runs for",
            "process 7 with 1 thread",
            "[1] forever uses",
            "frames",
            "1,000",
            "[1] forever: killed",
            "none: run PROGRAM &",
        ],
    );
    shows("hello a &\rhello b\r", &["hello, a", "hello, b", "hello: ended well"]);
    shows(&"forever &\r".repeat(13), &["[12] forever", "12 programs run already"]);
}

#[test]
fn what_runs_in_the_background_is_shown_above_the_line() {
    let mut script = Script::new("hello x &\rupt");
    let code = Shell::new(&mut script, &PROGRAMS).run();
    let shown = script.text();
    assert!(shown.contains("hello, x\n"), "{shown}");
    assert!(shown.contains("[1] hello: ended well, with code 0\n\rcapos> "), "{shown}");
    assert_eq!(code, 0);
}

#[test]
fn the_demo_is_two_jobs_and_a_key_ends_it() {
    let expected = ["press", "counter-client: ended with code 113", "counter-server: killed"];
    shows("demo\rq", &expected);
    shows("demo &\rkill 2\rkill 1\r", &["[1] counter-server and [2] counter-client run"]);
}

#[test]
fn wrong_input_gets_a_sentence_that_says_what_would_be_right() {
    for (line, says) in [
        ("foo", "no command is called foo: help lists"),
        ("run", "run takes a program: run hello"),
        ("run foo", "no program is called foo: help lists"),
        ("refused", "it cannot be started"),
        ("mem now", "mem takes nothing: leave now away"),
        ("mem &", "leave the & away"),
        ("kill", "kill takes the number of one job: kill 1"),
        ("kill x", "x is no number of a job: jobs lists"),
        ("kill 7", "there is no job 7: jobs lists"),
        ("wait 7", "there is no job 7"),
        ("exit 300", "from 0 to 100, not 300"),
        ("exit -1", "from 0 to 100"),
        ("time", "time takes a command: time run hello"),
        ("help foo", "no command is called foo"),
        ("echo 'x", "never closed"),
        ("hello | keys", "means nothing here"),
    ] {
        let code = shows(&format!("{line}\r"), &[says, PROMPT]);
        assert_eq!(code, 1, "{line}");
    }
}

#[test]
fn the_last_code_is_the_shells() {
    assert_eq!(session("noise\r\x04").1, 7);
    assert_eq!(session("noise\r\rlogout\r").1, 7);
    assert_eq!(session("noise\rpoweroff\rnever\r").1, 0);
    assert_eq!(session("time noise\rexit\r").1, 7);
    assert!(!session("exit 5\rnever\r").0.contains("never"));
}

/// Words of lines that mean something, and noise.
fn word() -> impl Strategy<Value = String> {
    let names: Vec<String> = COMMANDS
        .iter()
        .map(|command| command.name.to_owned())
        .filter(|name| !["logout", "exit", "poweroff"].contains(&&name[..]))
        .chain(PROGRAMS.iter().map(|program| program.name.to_owned()))
        .chain(
            ["&", "1", "2", "-3", "99999999999999999999", "'", "\"", "\\", "x\ty"]
                .map(str::to_owned),
        )
        .collect();
    prop_oneof![
        6 => test_property::inner::sample::select(names),
        1 => "[^\r\n\u{3}\u{4}]{0,12}",
    ]
}

fn line() -> impl Strategy<Value = String> {
    test_property::inner::collection::vec(word(), 0..6).prop_map(|words| words.join(" "))
}

test_property::proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Twenty lines each, 10,000 in all: every one is followed by a prompt that takes a command.
    #[test]
    fn no_line_ends_the_shell(lines in test_property::inner::collection::vec(line(), 20), is_slow: bool) {
        let mut typed = String::new();
        for line in &lines {
            // Ctrl-C ends what would wait for ever, and what is left of a line.
            typed += &format!("{line}\r\x03\x03");
        }
        typed += "\x15exit 42\r";
        let mut script = Script::new(&typed);
        script.is_slow = is_slow;
        let code = Shell::new(&mut script, &PROGRAMS).run();
        prop_assert_eq!(code, 42, "{}", script.text());
    }
}

#[test]
fn processes_threads_and_capabilities_are_listed_page_by_page() {
    let shown = ["init", "runs", "12.3 ms", "manifest", "worker", "ends", "  0\n", PROMPT];
    assert_eq!(shows("ps\r", &shown), 0);
    assert_eq!(shows("threads 0\r", &["  3", "runs", "batch", "  5", "is parked", PROMPT]), 0);
    let shown = [
        "clock",
        "Timer",
        "-  ",
        "0x123456789abcdef0, served by a program",
        "requests",
        "unknown",
        PROMPT,
    ];
    assert_eq!(shows("caps 0\r", &shown), 0);
}

#[test]
fn a_process_that_is_not_there_is_said_to_be_gone() {
    for (line, sentence) in [
        ("threads", "takes the number of one process"),
        ("caps 1 2", "takes the number of one process"),
        ("threads init", "is no number of a process"),
        ("caps 4294967296", "is no number of a process"),
        ("caps 3", "there is no process 3"),
        ("threads 8", "there is no process 8"),
        ("threads 7", "that process is gone"),
    ] {
        assert_eq!(shows(&format!("{line}\r"), &[sentence, PROMPT]), 1, "{line}");
    }
}

#[test]
fn lines_of_a_program_in_the_background_stay_whole() {
    let shown = ["one line\n", "two lines\n", "half\n", "pieces: ended well", PROMPT];
    assert_eq!(shows("pieces &\r", &shown), 0);
    // Two at once, and one that writes more than is kept of a line.
    let (shown, _) = session("pieces &\rpieces &\rnoise &\r");
    assert_eq!(
        shown.matches("two lines\n").count() + shown.matches("two\n lines\n").count(),
        2,
        "{shown}"
    );
}
