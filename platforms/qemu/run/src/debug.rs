//! The machine under gdb: QEMU waits before its first instruction, gdb has the kernel's symbols.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};

use qemu_command::{Gdb, Machine, QEMU, Serial, quoted};

use crate::options::Options;

/// Ends the machine when the debugger is done with it.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the machine and then gdb, or says how to.
pub fn start(options: &Options, mut machine: Machine) -> Result<ExitCode, String> {
    let folder = std::env::temp_dir().join(format!("capos-debug-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let console = folder.join("console.log");
    let port = free_port()?;
    machine.serial =
        Serial::Files { console: console.clone(), records: folder.join("records.bin") };
    machine.gdb = Some(Gdb { port, wait: true });
    let arguments = machine.arguments().map_err(|refused| refused.to_string())?;
    let gdb = gdb_words(options, port)?;
    if options.print {
        println!("{QEMU} {}\n{}", quoted(&arguments), quoted(&gdb));
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = Command::new(QEMU);
    command.args(arguments).stdin(Stdio::null());
    let guest = command.spawn().map_err(|e| format!("{QEMU} cannot be started: {e}"))?;
    let mut guest = Guest(guest);
    eprintln!("console: {}", console.display());
    if options.serve {
        eprintln!(
            "QEMU waits for gdb on port {port} of this sandbox's loopback; in another terminal:"
        );
        eprintln!("  ./bazelw shell {}", quoted(&gdb));
        let ended = guest.0.wait().map_err(|e| e.to_string())?;
        return Ok(if ended.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let (program, words) = gdb.split_first().ok_or("no gdb command")?;
    let status = Command::new(program)
        .args(words)
        .status()
        .map_err(|e| format!("gdb cannot be started: {e}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// gdb with the kernel's symbols, stopped where the kernel begins.
fn gdb_words(options: &Options, port: u16) -> Result<Vec<String>, String> {
    let kernel = absolute(&options.kernel)?;
    let mut words: Vec<String> = vec!["gdb".into(), "-q".into()];
    if options.batch {
        words.push("-batch".into());
    }
    words.push(kernel);
    let mut ex = |command: String| words.extend(["-ex".to_owned(), command]);
    ex("set pagination off".into());
    ex(format!("target remote 127.0.0.1:{port}"));
    for command in &options.gdb_commands {
        ex(command.clone());
    }
    Ok(words)
}

fn absolute(path: &PathBuf) -> Result<String, String> {
    let path = std::fs::canonicalize(path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path.display().to_string())
}

/// A port nobody listens on now.
fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|e| format!("loopback: {e}"))?;
    Ok(listener.local_addr().map_err(|e| e.to_string())?.port())
}
