//! `bazel run //test/bench:instructions`: boots the benchmark, prints its table, says what moved.
//!
//! `--json FILE` writes the figures as JSON lines, `--accept` makes them the accepted ones,
//! `--check` is the test: anything to look at is a failure. `--metrics FILE` takes the metrics of
//! an earlier run instead of booting.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use bench::compare::HOW_TO_ACCEPT;
use bench::{Accepted, compare, figures, table};

const USAGE: &str = "usage: instructions [--json FILE] [--accept] [--check] [--metrics FILE]";

#[derive(Default)]
struct Options {
    /// What boots the benchmark, and the checked-in files: given by the BUILD file.
    run: PathBuf,
    accepted: PathBuf,
    lock: PathBuf,
    json: Option<PathBuf>,
    metrics: Option<PathBuf>,
    is_accept: bool,
    is_check: bool,
}

fn main() -> ExitCode {
    match options().and_then(|options| work(&options)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::from(2)
        }
    }
}

fn options() -> Result<Options, String> {
    use lexopt::Arg::Long;
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next().map_err(|e| e.to_string())? {
        let name = match argument {
            Long(name) => name.to_owned(),
            other => return Err(format!("{}\n{USAGE}", other.unexpected())),
        };
        let mut path = || parser.value().map(PathBuf::from).map_err(|e| e.to_string());
        match name.as_str() {
            "run" => options.run = path()?,
            "accepted" => options.accepted = path()?,
            "lock" => options.lock = path()?,
            "json" => options.json = Some(as_typed(path()?)),
            "metrics" => options.metrics = Some(as_typed(path()?)),
            "accept" => options.is_accept = true,
            "check" => options.is_check = true,
            _ => return Err(format!("--{name} is not understood\n{USAGE}")),
        }
    }
    Ok(options)
}

/// A path as the person meant it: relative to where the command was typed.
fn as_typed(path: PathBuf) -> PathBuf {
    match env::var_os("BUILD_WORKING_DIRECTORY") {
        Some(folder) => Path::new(&folder).join(path),
        None => path,
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn work(options: &Options) -> Result<ExitCode, String> {
    let lock = read(&options.lock)?.trim().to_owned();
    let mut accepted = Accepted::read(&read(&options.accepted)?)
        .map_err(|e| format!("{}: {e}", options.accepted.display()))?;
    let metrics = match &options.metrics {
        Some(path) => read(path)?,
        None => boot(&options.run)?,
    };
    let figures = figures::read(&metrics)?;
    print!("{}", table::table(&figures, &accepted, &lock));
    if let Some(path) = &options.json {
        write(path, &figures::json_lines(&figures))?;
    }
    if options.is_accept {
        let root = env::var_os("BUILD_WORKSPACE_DIRECTORY");
        let root = root.ok_or("--accept goes with `bazel run`, which knows the workspace")?;
        accepted.accept(&lock, &figures);
        let path = Path::new(&root).join("test/bench/accepted.json");
        write(&path, &accepted.write())?;
        println!("\naccepted: {}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let findings = compare(&figures, &accepted, &lock);
    if !findings.is_empty() {
        println!();
        for finding in &findings {
            println!("{finding}");
        }
        println!("\n{HOW_TO_ACCEPT}");
    }
    let is_red = options.is_check && !findings.is_empty();
    Ok(if is_red { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Boots the benchmark; its metrics if its tests passed.
fn boot(run: &Path) -> Result<String, String> {
    let out = env::var_os("TEST_UNDECLARED_OUTPUTS_DIR").map_or_else(
        || env::temp_dir().join(format!("capos-bench-{}", std::process::id())),
        PathBuf::from,
    );
    let status = Command::new(run.canonicalize().map_err(|e| format!("{}: {e}", run.display()))?)
        .arg("--out")
        .arg(&out)
        .status()
        .map_err(|e| format!("{}: {e}", run.display()))?;
    if !status.success() {
        return Err(format!("the benchmark did not pass: see {}", out.display()));
    }
    read(&out.join("metrics.jsonl"))
}
