//! The runner: boots a guest in QEMU, judges it, leaves evidence.
//!
//! Exit status 0 is green, 1 a failed test, 2 a run that proves nothing, 64 a wrong
//! description. Console, records, command line, metrics and verdict, and of a guest that does not
//! end where its CPUs are, are kept in the test's undeclared outputs; the JUnit report goes where Bazel asks for it.

use harness::judge::{Class, judge};
use harness::monitor::Monitor;
use harness::names::Names;
use harness::options::{self, Run, USAGE};
use harness::transcript::{Before, read};
use harness::{dump, junit, machine, tell};
use qemu_command::{Media, quoted};
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use std::{env, fs, io};

const WRONG_DESCRIPTION: u8 = 64;

fn main() -> ExitCode {
    let run = match words().and_then(|words| options::parse(words).map_err(|e| e.to_string())) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("runner: {error}\n{USAGE}");
            return ExitCode::from(WRONG_DESCRIPTION);
        }
    };
    match boot_and_judge(&run) {
        Ok(class) => ExitCode::from(tell::status(class)),
        Err(error) => {
            eprintln!("runner: {}: infrastructure failure: {error}", run.label);
            ExitCode::from(tell::status(Class::Infrastructure))
        }
    }
}

/// The command line, with a leading `@file` replaced by the file's lines.
fn words() -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = env::args_os().skip(1).collect();
    if let Some(path) = words.first().and_then(|word| word.to_str()?.strip_prefix('@')) {
        let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        words.splice(..1, text.lines().map(OsString::from));
    }
    Ok(words)
}

fn boot_and_judge(run: &Run) -> io::Result<Class> {
    let out = out_dir(run)?;
    let (console, records) = (out.join("console.log"), out.join("records.bin"));
    for path in [&console, &records] {
        fs::write(path, b"")?;
    }
    let arguments = run
        .wired(console.clone(), records.clone())
        .arguments()
        .map_err(|refused| io::Error::new(io::ErrorKind::InvalidInput, refused.to_string()))?;
    let command = quoted([run.qemu.as_os_str()].into_iter().chain(arguments.iter().map(|a| &**a)));
    fs::write(out.join("command.txt"), format!("{command}\n"))?;
    if let Some(gdb) = run.machine.gdb {
        println!("waiting for a debugger: gdb -ex 'target remote 127.0.0.1:{}'", gdb.port);
    }

    let log = out.join("qemu.log");
    let cpus = OnceCell::new();
    let on_stuck = |monitor: &mut Monitor| {
        cpus.get_or_init(|| keep_state(run, monitor, &out));
    };
    let began = Instant::now();
    let ending = machine::run(&machine::Start {
        qemu: &run.qemu,
        arguments: &arguments,
        log: &log,
        outputs: &[console.clone(), records.clone()],
        output_max_bytes: run.output_max_bytes,
        guard: run.guard(env::var("TEST_TIMEOUT").ok().as_deref()),
        terminal: run.terminal,
        tells_ending: run.tells_ending(),
        on_stuck: &on_stuck,
    });
    let wall = began.elapsed();

    let before = match run.machine.media {
        Media::Program { .. } | Media::Direct { .. } => Before::Nothing,
        Media::Cd { .. } | Media::Usb { .. } => Before::FirmwareText,
    };
    let events = read(&fs::read(&records)?, before);
    let verdict = judge(run.expect, &ending, &events);

    let console_tail = tell::tail(&fs::read(&console)?);
    let qemu_log = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    fs::write(out.join("records.txt"), tell::records(&events))?;
    fs::write(out.join("metrics.jsonl"), tell::metrics_json_lines(run, &verdict))?;
    fs::write(out.join("verdict.json"), tell::verdict_json(run, &verdict, wall))?;
    if let Some(path) = env::var_os("XML_OUTPUT_FILE") {
        fs::write(path, junit::xml(&run.label, &verdict, wall, &console_tail))?;
    }
    if let Some(cpus) = cpus.get() {
        print!("--- where the CPUs were (cpus.txt has more)\n{cpus}");
    }
    print!("{}", tell::summary(run, &verdict, wall, &command, &console_tail, &qemu_log));
    println!("outputs: {}", tell::as_seen_from_the_workspace(&out));
    Ok(verdict.class)
}

/// Keeps where the CPUs of a guest are that does not end, and returns the short form of it.
fn keep_state(run: &Run, monitor: &mut Monitor, out: &Path) -> String {
    let file = run.symbols.as_ref().and_then(|path| fs::read(path).ok()).unwrap_or_default();
    let dump = dump::take(monitor, Names::parse(&file).as_ref());
    let mut summary = dump.summary;
    if run.core {
        let core = out.join("core.elf");
        match (dump::keep_memory(monitor, &core), &run.symbols) {
            (Ok(()), symbols) => {
                let kernel = symbols.as_deref().unwrap_or(Path::new("KERNEL"));
                let kernel = std::path::absolute(kernel).unwrap_or(kernel.to_owned());
                let line = format!("memory: gdb {} {}\n", kernel.display(), core.display());
                summary.push_str(&line);
            }
            (Err(error), _) => summary.push_str(&format!("the memory is not kept: {error}\n")),
        }
    }
    match fs::write(out.join("cpus.txt"), format!("{summary}\n{}", dump.details)) {
        Ok(()) => summary,
        Err(error) => format!("{summary}cpus.txt cannot be written: {error}\n"),
    }
}

/// Where evidence is kept: as told, else where Bazel collects it, else a folder of its own.
fn out_dir(run: &Run) -> io::Result<PathBuf> {
    let out = run
        .out
        .clone()
        .or_else(|| env::var_os("TEST_UNDECLARED_OUTPUTS_DIR").map(PathBuf::from))
        .unwrap_or_else(|| env::temp_dir().join(format!("capos-run-{}", std::process::id())));
    fs::create_dir_all(&out)?;
    fs::canonicalize(Path::new(&out))
}
