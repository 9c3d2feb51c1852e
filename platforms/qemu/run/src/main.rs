//! Starts QEMU for a person: the system on the terminal, or under gdb.

mod debug;
mod ending;
mod feed;
mod options;

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use ending::Ending;
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
    // The system's end is the machine's; under a debugger it stays for a look.
    machine.exit_port = options.mode == Mode::Run;
    machine.cpus = options.smp.unwrap_or(2);
    machine.memory_mib = options.mem.unwrap_or(256);
    machine.append = match options.boot {
        // The image in use has the word, but not the stub that may refuse to load it. What a
        // person appends comes last and counts.
        Boot::Direct if machine.exit_port => {
            format!("exit=debug {}", options.append).trim_end().into()
        }
        Boot::Direct | Boot::Cd | Boot::Usb => options.append.clone(),
    };
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
    let mut command = Command::new(QEMU);
    command.args(arguments);
    // A terminal is QEMU's until it ends, and this process only waits for that.
    let ended = if std::io::stdin().is_terminal() { command.status() } else { feed::run(command) };
    let ended = ended.map_err(|error| format!("{QEMU} cannot be started: {error}"))?;
    let ending = Ending::of(ended.code(), ended.signal());
    eprintln!("{ending}");
    Ok(if ending.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
