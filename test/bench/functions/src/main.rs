//! `bazel run //test/bench:functions -- NAME [--files]`: where the instructions of a measurement
//! go, by function or by file.
//!
//! Boots the benchmark with the emulator's log led through a pipe, so that nothing of its gigabyte
//! is kept, and prints one operation as a table.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use bench_functions::inlined::Owner;
use bench_functions::program::Program;
use bench_functions::rounds::{Executed, Rounds};
use bench_functions::words::{USAGE, Words};
use bench_functions::{inlined, log, table};

/// The files of the image whose code runs, the kernel first.
const PROGRAMS: [&str; 5] = ["kernel", "client", "echo", "typed", "yielder"];

/// How long the boot may take: the log makes it a hundred times slower.
const GUARD_SECONDS: &str = "900";

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("functions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<(), String> {
    let words = Words::parse(env::args_os().skip(1))?;
    if words.is_help {
        println!("{USAGE}");
        return Ok(());
    }
    let folder = env::temp_dir().join(format!("capos-functions-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = trace(&words, &folder);
    let _ = fs::remove_dir_all(&folder);
    print!("{}", table::table(words.name, &result?));
    Ok(())
}

/// Runs a command to its end.
fn must(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Instructions of one operation by program and function.
fn trace(words: &Words, folder: &Path) -> Result<BTreeMap<(String, String), u64>, String> {
    must(Command::new("tar").arg("-C").arg(folder).arg("-xf").arg(&words.bundle))?;
    let program = |name: &&str| {
        let path = folder.join("boot").join(name).with_extension("elf");
        let file = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Program::read(name, &file)
    };
    let programs = PROGRAMS.iter().map(program).collect::<Result<Vec<_>, _>>()?;
    let executed = follow(&words.run, folder, &programs, words.function)?;
    let owners = owners(&words.kernel, &executed)?;
    let mut counts = BTreeMap::new();
    for Executed { program, address, count } in executed {
        let (name, function) = match program.and_then(|index| programs.get(index)) {
            None => ("?", "?".to_owned()),
            Some(program) => {
                let row = match owners.get(&address) {
                    Some(owner) if words.is_by_file => owner.file.clone(),
                    Some(owner) => format!("{} ({})", owner.function, owner.file),
                    None => inlined::short(program.function(address)),
                };
                (program.name.as_str(), row)
            }
        };
        *counts.entry((name.to_owned(), function)).or_default() += count;
    }
    Ok(counts)
}

/// Boots the benchmark and follows its log.
fn follow(
    run: &Path,
    folder: &Path,
    programs: &[Program],
    function: &str,
) -> Result<Vec<Executed>, String> {
    let pipe = folder.join("log");
    must(Command::new("mkfifo").arg(&pipe))?;
    let run = run.canonicalize().map_err(|e| format!("{}: {e}", run.display()))?;
    let mut guest = Command::new(run)
        .args(["--guard-seconds", GUARD_SECONDS, "--qemu-arg=-d"])
        .args(["--qemu-arg=in_asm,exec,nochain", "--qemu-arg=-D"])
        .arg(format!("--qemu-arg={}", pipe.display()))
        .arg("--out")
        .arg(folder.join("out"))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let mut rounds = Rounds::new(programs, "client", function);
    let log = File::open(&pipe).map_err(|e| e.to_string())?;
    log::read(BufReader::with_capacity(1 << 20, log), &mut rounds).map_err(|e| e.to_string())?;
    let status = guest.wait().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err("the benchmark did not pass; run //test/bench:guest for its report".into());
    }
    rounds.middle().ok_or(format!("no operation of {function} was seen"))
}

/// The functions kernel instructions belong to, inlined ones included.
fn owners(kernel: &Path, executed: &[Executed]) -> Result<HashMap<u64, Owner>, String> {
    let is_kernel = |entry: &&Executed| entry.program == Some(0);
    let addresses = executed.iter().filter(is_kernel).map(|entry| format!("{:#x}", entry.address));
    let output = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-C", "-e"])
        .arg(kernel)
        .args(addresses)
        .output()
        .map_err(|e| format!("addr2line: {e}"))?;
    Ok(inlined::read(&String::from_utf8_lossy(&output.stdout)))
}
