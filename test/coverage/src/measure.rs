//! Runs the programs, and has LLVM's tools read what they counted.

use crate::lines::{self, File, Verdict};
use crate::options::{Options, Program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Measures in the folder `work`.
pub fn measure(options: &Options, work: &Path) -> Result<Verdict, String> {
    let mut counts: Vec<PathBuf> = Vec::new();
    for (number, program) in options.programs.iter().enumerate() {
        let folder = work.join(number.to_string());
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        run(program, &folder)?;
        counts.extend(written(&folder)?);
    }
    let profile = work.join("all.profdata");
    let mut merge = Command::new(&options.llvm_profdata);
    output(merge.args(["merge", "--sparse", "-o"]).arg(&profile).args(&counts))?;
    let mut export = Command::new(&options.llvm_cov);
    export.args(["export", "--format=lcov", "--skip-expansions", "--skip-functions"]);
    export.arg("--instr-profile").arg(&profile);
    for program in &options.programs {
        export.arg("--object").arg(&program.path);
    }
    let counted = lines::read(&output(&mut export)?);
    let file = |path: &String| {
        let text = fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        Ok(File { path: path.clone(), text })
    };
    let mut all = Verdict { text: String::new(), is_enough: true };
    for measured in &options.crates {
        let files = measured.sources.iter().map(file).collect::<Result<Vec<File>, String>>()?;
        let verdict = lines::judge(&measured.name, &files, &counted, options.least_percent);
        all.text.push_str(&verdict.text);
        all.is_enough &= verdict.is_enough;
    }
    Ok(all)
}

/// Runs a program to its good end; it leaves its counts in `folder`.
fn run(program: &Program, folder: &Path) -> Result<(), String> {
    // One file for each process, as some start others.
    let file = folder.join("%p.profraw");
    let mut command = Command::new(&program.path);
    command.args(&program.words).envs(program.env.iter().cloned()).env("LLVM_PROFILE_FILE", file);
    output(&mut command).map(drop)
}

/// The counts in a folder. A program that leaves none was not built to count.
fn written(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("{}: the program ran and counted nothing", folder.display()));
    }
    Ok(files)
}

/// What a command prints, if it ends well.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|e| format!("{name}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        let (said, complained) = (text(&output.stdout), text(&output.stderr));
        return Err(format!("{name} ended with {}\n{said}{complained}", output.status));
    }
    Ok(text(&output.stdout))
}
