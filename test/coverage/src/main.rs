//! Measures as a description file says, and fails if too few lines were reached.

use coverage_tool::lines::Verdict;
use coverage_tool::{measure, options};
use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    match verdict() {
        Ok(Verdict { text, is_enough }) => {
            print!("{text}");
            if is_enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("coverage: {error}");
            ExitCode::FAILURE
        }
    }
}

fn verdict() -> Result<Verdict, String> {
    let path =
        env::args_os().nth(1).ok_or("the first word is the file that says what to measure")?;
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let options = options::parse(&text).map_err(|e| e.to_string())?;
    let work = env::var_os("TEST_TMPDIR").map_or_else(env::temp_dir, PathBuf::from);
    let verdict = measure::measure(&options, &work.join("coverage"))?;
    if let Some(out) = env::var_os("TEST_UNDECLARED_OUTPUTS_DIR") {
        let path = PathBuf::from(out).join("coverage.txt");
        fs::write(&path, &verdict.text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(verdict)
}
