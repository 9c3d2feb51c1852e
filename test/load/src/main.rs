//! Runs guest suites of the racing lane many times under load.
//!
//! The first word is the file that lists the suites. Exit status 0: every run was green; 1: one was
//! not; 64: a wrong word.

use load::options::{self, Options, USAGE};
use load::{campaign, report};
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

const NOT_GREEN: u8 = 1;
const WRONG_WORD: u8 = 64;

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("load: {error}\n{USAGE}");
            return ExitCode::from(WRONG_WORD);
        }
    };
    // Keys of a hash map are the chance that the standard library has.
    let seed = options.seed.unwrap_or_else(|| RandomState::new().hash_one(0_u8) >> 32);
    match hold(&options, seed) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(NOT_GREEN),
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::from(NOT_GREEN)
        }
    }
}

fn options() -> Result<Options, String> {
    let mut words = env::args_os().skip(1);
    let list = words.next().ok_or("the first word is the file that lists the suites")?;
    let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    options::parse(&text, words.collect::<Vec<OsString>>()).map_err(|e| e.to_string())
}

/// Holds the campaign and says whether all of it was green.
fn hold(options: &Options, seed: u64) -> io::Result<bool> {
    let out = out_dir(options, seed)?;
    print!("{}", report::begin(options, seed));
    let shown = |path: &Path| harness::tell::as_seen_from_the_workspace(path);
    let runs = campaign::run(options, seed, &out, |run| print!("{}", report::one(run, shown)))?;
    let table = report::end(options, &runs, seed);
    print!("{table}");
    fs::write(out.join("report.txt"), format!("{}{table}", report::begin(options, seed)))?;
    println!("outputs: {}", shown(&out));
    Ok(runs.iter().all(|run| run.outcome == campaign::Outcome::Green))
}

/// Where evidence is kept: as told, else where Bazel collects it, else beside what Bazel has
/// collected of tests, because that is seen from outside of the tool chain's sandbox.
fn out_dir(options: &Options, seed: u64) -> io::Result<PathBuf> {
    let of_test = || env::var_os("TEST_UNDECLARED_OUTPUTS_DIR").map(PathBuf::from);
    let of_workspace = || {
        let workspace = PathBuf::from(env::var_os("BUILD_WORKSPACE_DIRECTORY")?);
        let logs = fs::canonicalize(workspace.join("bazel-testlogs")).ok()?;
        Some(logs.join("test/load").join(format!("seed-{seed}")))
    };
    let out = options
        .out
        .clone()
        .or_else(of_test)
        .or_else(of_workspace)
        .unwrap_or_else(|| env::temp_dir().join(format!("capos-load-{}", std::process::id())));
    fs::create_dir_all(&out)?;
    fs::canonicalize(&out)
}
