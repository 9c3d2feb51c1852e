//! Checks a compiled manifest as the kernel does: `check SOURCE BLOB MODULE…`.
//!
//! SOURCE is only named in what it says; MODULE… are the boot modules of the system.

use std::error::Error;
use std::process::ExitCode;

use zerocopy::IntoBytes;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, blob, modules @ ..] = arguments.as_slice() else {
        eprintln!("usage: check SOURCE BLOB MODULE…");
        return ExitCode::from(2);
    };
    match check(blob, modules) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{source}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(blob: &str, modules: &[String]) -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(blob)?;
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    let aligned = &mut words.as_mut_bytes()[..bytes.len()];
    aligned.copy_from_slice(&bytes);
    core_manifest::Manifest::check(aligned, |name| modules.iter().any(|module| module == name))?;
    Ok(())
}
