//! `bazel run //test/bench:instructions`: boots the benchmark, prints its table, says what moved.
//!
//! `--help` lists the options.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use bench::compare::HOW_TO_ACCEPT;
use bench::options::USAGE;
use bench::{Accepted, Options, compare, figures, table};

fn main() -> ExitCode {
    match Options::parse(env::args_os().skip(1)).and_then(|options| work(&options)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::from(2)
        }
    }
}

/// A path as the person meant it: relative to where the command was typed.
fn as_typed(path: &Path) -> PathBuf {
    match env::var_os("BUILD_WORKING_DIRECTORY") {
        Some(folder) => Path::new(&folder).join(path),
        None => path.to_owned(),
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

fn work(options: &Options) -> Result<ExitCode, String> {
    if options.is_help {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let lock = read(&options.lock)?.trim().to_owned();
    let mut accepted = Accepted::read(&read(&options.accepted)?)
        .map_err(|e| format!("{}: {e}", options.accepted.display()))?;
    let metrics = match &options.metrics {
        Some(path) => read(&as_typed(path))?,
        None => boot(&options.run)?,
    };
    let figures = figures::read(&metrics)?;
    print!("{}", table::table(&figures, &accepted, &lock));
    if let Some(path) = &options.json {
        write(&as_typed(path), &figures::json_lines(&figures))?;
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
