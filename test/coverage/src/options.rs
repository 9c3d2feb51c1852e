//! The description of a measurement: one word a line, as the rule writes it.

use lexopt::prelude::*;
use std::ffi::OsString;
use std::path::PathBuf;

/// A program to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub words: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// A crate that is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Crate {
    pub name: String,
    /// The files whose lines count.
    pub sources: Vec<String>,
}

/// A measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub llvm_cov: PathBuf,
    pub llvm_profdata: PathBuf,
    /// Fewer lines than this, in percent of a crate's, are a failure.
    pub least_percent: u32,
    pub crates: Vec<Crate>,
    pub programs: Vec<Program>,
}

/// Reads a description.
pub fn parse(text: &str) -> Result<Options, lexopt::Error> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(text.lines().map(OsString::from));
    while let Some(word) = parser.next()? {
        match word {
            Long("llvm-cov") => options.llvm_cov = parser.value()?.into(),
            Long("llvm-profdata") => options.llvm_profdata = parser.value()?.into(),
            Long("least") => options.least_percent = parser.value()?.parse()?,
            Long("crate") => {
                let name = parser.value()?.string()?;
                options.crates.push(Crate { name, sources: Vec::new() });
            }
            Long("source") => {
                let source = parser.value()?.string()?;
                let of = options.crates.last_mut().ok_or("--source comes behind a --crate")?;
                of.sources.push(source);
            }
            Long("program") => {
                let path = parser.value()?.into();
                options.programs.push(Program { path, ..Program::default() });
            }
            Long("word") => {
                let word = parser.value()?.string()?;
                last(&mut options)?.words.push(word);
            }
            Long("env") => {
                let setting = parser.value()?.string()?;
                let (name, value) = setting
                    .split_once('=')
                    .ok_or_else(|| format!("--env takes NAME=VALUE, not {setting:?}"))?;
                last(&mut options)?.env.push((name.into(), value.into()));
            }
            other => return Err(other.unexpected()),
        }
    }
    if options.crates.is_empty() || options.programs.is_empty() {
        return Err("a measurement has a --crate and a --program at least".into());
    }
    if options.llvm_cov.as_os_str().is_empty() || options.llvm_profdata.as_os_str().is_empty() {
        return Err("a measurement needs --llvm-cov and --llvm-profdata".into());
    }
    Ok(options)
}

fn last(options: &mut Options) -> Result<&mut Program, lexopt::Error> {
    options.programs.last_mut().ok_or_else(|| "--word and --env come behind a --program".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = "--llvm-cov\nc\n--llvm-profdata\np\n";

    #[test]
    fn words_and_settings_belong_to_the_program_before_them() {
        let text = "--least\n90\n--crate\nk\n--source\na.rs\n--program\nx\n--program\ny\n--word\n--seeds\n--env\nA=b=c";
        let options = parse(&format!("{TOOLS}{text}")).unwrap();
        let measured = Crate { name: "k".into(), sources: vec!["a.rs".into()] };
        assert_eq!((options.least_percent, options.crates), (90, vec![measured]));
        let plain = Program { path: "x".into(), ..Program::default() };
        let words = vec!["--seeds".into()];
        let other = Program { path: "y".into(), words, env: vec![("A".into(), "b=c".into())] };
        assert_eq!(options.programs, [plain, other]);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, part) in [
            ("--crate\nk", "a --crate and a --program"),
            ("--source\na.rs", "comes behind a --crate"),
            ("--word\nx", "come behind a --program"),
            ("--program\nx\n--env\nA", "NAME=VALUE"),
            ("--nothing", "--nothing"),
        ] {
            let error = parse(&format!("{TOOLS}{text}")).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = parse("--crate\na\n--program\nb").unwrap_err().to_string();
        assert!(error.contains("--llvm-profdata"), "{error}");
    }
}
