//! `bazel run //test/bench:functions -- NAME`: where the instructions of a measurement go.
//!
//! Boots the benchmark with the emulator's log led through a pipe, so that nothing of its gigabyte
//! is kept, and prints one operation as a table by function.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use bench_functions::program::Program;
use bench_functions::rounds::Rounds;
use bench_functions::{MEASUREMENTS, log, table};

/// The files of the image whose code runs.
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
    let (run, bundle, name) = words()?;
    let function = MEASUREMENTS.iter().find(|(known, _)| *known == name).map(|(_, of)| *of);
    let function = function.ok_or_else(|| {
        let known: Vec<&str> = MEASUREMENTS.iter().map(|(name, _)| *name).collect();
        format!("{name} is not among {}", known.join(", "))
    })?;
    let folder = env::temp_dir().join(format!("capos-functions-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let result = trace(&run, &bundle, &folder, function);
    let _ = fs::remove_dir_all(&folder);
    print!("{}", table::table(&name, result?));
    Ok(())
}

fn words() -> Result<(PathBuf, PathBuf, String), String> {
    use lexopt::Arg::{Long, Value};
    let (mut run, mut bundle, mut name) = (None, None, String::from("ipc_rt_64"));
    let mut parser = lexopt::Parser::from_env();
    while let Some(word) = parser.next().map_err(|e| e.to_string())? {
        match word {
            Long("run") => run = Some(parser.value().map_err(|e| e.to_string())?.into()),
            Long("bundle") => bundle = Some(parser.value().map_err(|e| e.to_string())?.into()),
            Value(word) => name = word.to_string_lossy().into_owned(),
            other => return Err(other.unexpected().to_string()),
        }
    }
    Ok((run.ok_or("--run is missing")?, bundle.ok_or("--bundle is missing")?, name))
}

/// Runs a command to its end.
fn must(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|e| format!("{command:?}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

fn trace(
    run: &Path,
    bundle: &Path,
    folder: &Path,
    function: &str,
) -> Result<Vec<(bench_functions::rounds::Place, u64)>, String> {
    must(Command::new("tar").arg("-C").arg(folder).arg("-xf").arg(bundle))?;
    let program = |name: &&str| {
        let path = folder.join("boot").join(name).with_extension("elf");
        let file = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Program::read(name, &file)
    };
    let programs = PROGRAMS.iter().map(program).collect::<Result<Vec<_>, _>>()?;
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
    let mut rounds = Rounds::new(&programs, "client", function);
    let log = File::open(&pipe).map_err(|e| e.to_string())?;
    log::read(BufReader::with_capacity(1 << 20, log), &mut rounds).map_err(|e| e.to_string())?;
    let status = guest.wait().map_err(|e| e.to_string())?;
    if !status.success() {
        return Err("the benchmark did not pass; run //test/bench:guest for its report".into());
    }
    rounds.middle().ok_or(format!("no operation of {function} was seen"))
}
