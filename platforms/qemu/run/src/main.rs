//! Starts QEMU for a person: the system on the terminal, or under gdb.

mod debug;
mod options;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use options::{Boot, DEBUG_HELP, HELP, Mode, Options};
use qemu_command::{Display, FIRMWARE, Machine, Media, QEMU, quoted};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(sentence) => return fail(&sentence),
    };
    if options.help {
        print!("{HELP}");
        if options.mode == Mode::Debug {
            print!("{DEBUG_HELP}");
        }
        return ExitCode::SUCCESS;
    }
    match machine(&options).and_then(|machine| start(&options, machine)) {
        Ok(code) => code,
        Err(sentence) => fail(&sentence),
    }
}

fn fail(sentence: &str) -> ExitCode {
    eprintln!("{sentence}");
    ExitCode::from(2)
}

/// The machine that was asked for.
fn machine(options: &Options) -> Result<Machine, String> {
    let firmware = PathBuf::from(FIRMWARE);
    let iso = options.iso.clone();
    let media = match options.boot {
        Boot::Direct => {
            Media::Direct { stub: options.stub.clone(), bundle: options.bundle.clone() }
        }
        Boot::Cd => Media::Cd { iso, firmware },
        Boot::Usb => Media::Usb { iso, firmware },
    };
    let mut machine = Machine::new(media);
    machine.cpus = options.smp.unwrap_or(2);
    machine.memory_mib = options.mem.unwrap_or(256);
    machine.append = options.append.clone();
    if let Some(lane) = options.lane {
        machine.lane = lane;
    }
    if options.gui {
        machine.display = Display::Vnc { socket: screen_socket()? };
    }
    Ok(machine)
}

/// A place for the screen's socket that a viewer outside can open: below the workspace.
fn screen_socket() -> Result<PathBuf, String> {
    let folder = std::env::var_os("BUILD_WORKSPACE_DIRECTORY").map(PathBuf::from);
    let folder = folder.ok_or("--gui works under `bazel run`, which names the workspace")?;
    Ok(folder.join("bazel-screen.vnc"))
}

fn start(options: &Options, machine: Machine) -> Result<ExitCode, String> {
    if options.mode == Mode::Debug {
        return debug::start(options, machine);
    }
    let arguments = machine.arguments().map_err(|refused| refused.to_string())?;
    if options.print {
        println!("{QEMU} {}", quoted(&arguments));
        return Ok(ExitCode::SUCCESS);
    }
    if let Display::Vnc { socket } = &machine.display {
        eprintln!("screen: open {} with a VNC viewer", socket.display());
    }
    eprintln!("capOS in QEMU: Ctrl-A X leaves");
    // Replaces this process: the terminal and its signals are QEMU's.
    let error = Command::new(QEMU).args(arguments).exec();
    Err(format!("{QEMU} cannot be started: {error}"))
}
