//! The shell of the shipped system as a person meets it: typing, editing, history, completion, programs, garbage.

use abi_report::Exit;
use test_terminal::{PROMPT, Terminal};

const CTRL_C: &str = "\x03";

#[test]
fn a_person_finds_what_the_first_screen_promises() {
    let mut terminal = Terminal::boot(&["--smp", "2"]);
    first_screen(&mut terminal);
    editing(&mut terminal);
    programs(&mut terminal);
    jobs(&mut terminal);
    wrong_input(&mut terminal);
    garbage(&mut terminal);
    any_lines(&mut terminal);
    terminal.line("mem", &["frames of 4 KiB are free", "the kernel's heap"]);
    terminal.keys("noise\x15exit 3\r");
    let (exit, said) = terminal.end();
    assert!(said.contains("The system has ended with 3."));
    assert_eq!(exit, Some(Exit::Fail));
}

fn first_screen(terminal: &mut Terminal) {
    for line in
        ["capOS is up", "This is capOS", "help", "primes", "demo", "To leave, type poweroff"]
    {
        terminal.expect(line);
    }
    terminal.expect(PROMPT);
}

fn editing(terminal: &mut Terminal) {
    // Two keys wrong, mended with the cursor: Home, right over "run h", delete, insert; End.
    terminal.line(
        "run hxllo bo\x1b[Hr\x7f\x1b[C\x1b[C\x1b[C\x1b[C\x1b[C\x1b[3~e\x05b",
        &["hello, bob"],
    );
    // History, up twice and down once; then Ctrl-A, Ctrl-K and Ctrl-U leave nothing.
    terminal.line("uptime", &["up for 0:"]);
    terminal.line("\x1b[A\x1b[A\x1b[B", &["up for 0:"]);
    terminal.line("\x1b[A\x1b[A", &["hello, bob"]);
    terminal.line("something\x01\x0belse\x15help time", &["carries out a command"]);
    // Words go with Ctrl-W, UTF-8 by characters.
    terminal.line("echo grün x\x7f\x7fe y\x17", &["\r\ngrüne\r\n", "ended well"]);
    // Completion: a listing where there are several, the rest of the word where there is one.
    terminal.keys("hel\t");
    terminal.expect("help  hello");
    terminal.line("lo\t \tann", &["hello, ann", "hello: ended well"]);
    terminal.line("upt\t", &["up for 0:"]);
    // Ctrl-C drops the line.
    terminal.line(&format!("never{CTRL_C}uptime"), &["never^C", "up for 0:"]);
}

fn programs(terminal: &mut Terminal) {
    terminal
        .line("run primes 2", &["78498 primes below 1000000", "primes: ended well, with code 0"]);
    terminal.line("time run sleep 20", &["sleep: ended well", "that took "]);
    // Ctrl-C ends a program that computes on both CPUs, and the prompt is there.
    terminal.keys("spin 4\r");
    terminal.expect("threads: 4");
    terminal.keys(CTRL_C);
    terminal.expect("spin: killed, with code 130");
    terminal.expect(PROMPT);
    // What is typed goes to the program that reads.
    terminal.keys("keys\r");
    terminal.expect("Ctrl-D ends");
    terminal.keys("A");
    terminal.expect("0x41  A");
    terminal.keys("\x04");
    terminal.expect("keys: ended well");
    terminal.expect(PROMPT);
    // A crash has a report, and a code in words.
    let fault =
        terminal.line("fault", &["stack overflow", "backtrace", "ended by a stack overflow"]);
    assert!(fault.contains("process \"fault\" ended"), "{fault}");
    // Two programs that talk, until a key.
    terminal.keys("demo\r");
    terminal.expect("client: calling; press a key to end");
    terminal.expect("cpu 1:");
    terminal.keys("q");
    terminal.expect("client: done");
    terminal.expect("counter-client: ended well");
    terminal.expect(PROMPT);
    terminal.line("bench", &["emulation", "Timer.now", "a process: started", " ns  ("]);
    terminal.line("cpus", &["syscalls", "  0 ", "  1 "]);
}

fn jobs(terminal: &mut Terminal) {
    let started = terminal.line("spin 2 &", &["spin runs; wait "]);
    let number = started.rsplit('[').next().and_then(|rest| rest.split(']').next());
    let number = number.expect("its number is said").to_owned();
    terminal.line("jobs", &[&format!("[{number}] spin: runs for")]);
    terminal.line("mem", &[&format!("[{number}] spin uses"), "frames", "threads"]);
    terminal.line(&format!("kill {number}"), &[]);
    terminal.line(&format!("wait {number}"), &["killed, with code 130"]);
    // What runs in the background writes above the line that is being typed.
    terminal.line("sleep 1 &", &["sleep runs"]);
    terminal.line("echo back &", &["echo runs"]);
    terminal.line("jobs", &[]);
}

fn wrong_input(terminal: &mut Terminal) {
    for (line, says) in [
        ("foo", "no command is called foo: help lists those there are"),
        ("run foo", "no program is called foo"),
        ("kill 999", "there is no job 999"),
        ("kill x", "x is no number of a job"),
        ("echo 'x", "never closed"),
        ("echo x | y", "means nothing here"),
        ("mem &", "leave the & away"),
        ("primes 100", "primes takes a number of threads from 1 to 8"),
        ("exit 300", "from 0 to 100"),
        (&format!("echo {}", "word ".repeat(20)), "at most 18 words"),
    ] {
        terminal.line(line, &[says]);
    }
}

fn garbage(terminal: &mut Terminal) {
    let mut bytes: Vec<u8> = (0x80..=0xff).collect();
    bytes.extend(
        b"\x1b[9999999999999999999999999q\x1b[\x1b\x1bO\x1b]junk\x00\x1c\x1d\x1e\x1f\xf0\x9f",
    );
    bytes.extend(b"\x15");
    terminal.keys(&bytes);
    terminal.line("uptime", &["up for 0:"]);
    // Longer than any line, but not than what the kernel keeps of what is typed.
    terminal.line(&"x".repeat(700), &["no command is called xxxx"]);
    terminal.line("uptime", &["up for 0:"]);
}

/// Lines of words that mean something here and there; Ctrl-C after each ends whatever it began.
fn any_lines(terminal: &mut Terminal) {
    const LINES: usize = 150;
    const WORDS: [&str; 26] = [
        "help", "run", "jobs", "wait", "kill", "mem", "cpus", "uptime", "time", "echo", "spin",
        "keys", "sleep", "hello", "primes", "demo", "&", "1", "3", "-7", "'", "\"", "\\", "x\ty",
        "\x1b[A", "ä\x1b[D",
    ];
    // What of it is random is the same each time.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..LINES {
        let mut line = String::new();
        for _ in 0..seed % 5 {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            line += WORDS[(seed >> 32) as usize % WORDS.len()];
            line += " ";
        }
        seed = seed.wrapping_add(1);
        terminal.keys(format!("{line}\r{CTRL_C}"));
        terminal.expect("^C");
        terminal.expect(PROMPT);
    }
    terminal.line("echo still here", &["still here\r\n"]);
}
