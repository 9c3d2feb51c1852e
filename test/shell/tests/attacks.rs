//! A program that means its shell no good: whatever it does with the console it was given, Ctrl-C ends it, the prompt is
//! there, and what others write and read is theirs.

use abi_report::Exit;
use test_terminal::{PROMPT, Terminal};

const CTRL_C: &str = "\x03";

#[test]
fn a_hostile_program_keeps_nobody_from_the_prompt() {
    let mut terminal = Terminal::boot(&["--smp", "2"]);
    terminal.expect(PROMPT);
    // Calls that are no messages of the interface, reads of nothing and writes of too much are answered.
    let garbage = terminal.line("hostile garbage", &["hostile: garbage done", "ended well"]);
    assert_eq!(garbage.matches("refused").count(), 4, "{garbage}");
    assert!(garbage.contains("50 of 50 writes of 500 bytes were not taken"), "{garbage}");
    // Sixteen reads at once: one waits, the others are refused; it ends with all of them under way.
    terminal.line("hostile reads", &["15 of 16 reads were refused", "ended well"]);
    // As many times as a service may have badges, and more: each is given back.
    for _ in 0..3 {
        terminal.line("hostile mint", &["hostile: minted nothing", "ended well"]);
    }
    // A flood in the foreground, from several threads.
    terminal.keys("hostile flood\r");
    terminal.expect("flood flood");
    terminal.keys(CTRL_C);
    terminal.expect("hostile: killed, with code 130");
    terminal.expect(PROMPT);
    // In the background: what a person types is carried out in spite of it. The flood paints prompts as it goes, so
    // the line's own words are waited for.
    terminal.keys("hostile flood &\r");
    terminal.expect("hostile runs; wait ");
    let number = terminal.expect(" waits").replace(" waits", "");
    terminal.keys("echo here I am\r");
    terminal.expect("\nhere I am");
    terminal.keys(format!("kill {number}\r"));
    terminal.expect("hostile: killed, with code 130");
    terminal.line("keys &", &["keys: "]);
    terminal.line("uptime", &["up for 0:"]);
    terminal.keys("poweroff\r");
    let (exit, said) = terminal.end();
    assert!(said.contains("The system has ended with 0."));
    assert_eq!(exit, Some(Exit::Pass));
}

/// Every program has a facet with a badge of its own, of which a service may have 256.
#[test]
fn more_programs_than_there_are_badges_can_be_run() {
    let mut terminal = Terminal::boot(&["--smp", "2"]);
    terminal.expect(PROMPT);
    for _ in 0..300 {
        terminal.line("sleep 0", &["sleep: ended well"]);
    }
    terminal.line("mem", &["frames of 4 KiB are free"]);
    terminal.keys("poweroff\r");
    assert_eq!(terminal.end().0, Some(Exit::Pass));
}
