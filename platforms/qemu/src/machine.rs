//! A machine and its command line.

use abi_report::EXIT_PORT;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// How the emulator turns instructions into time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Guest time is the count of executed instructions: exact and repeatable on any host.
    /// CPUs run in turn, so guest time is the sum over them.
    Deterministic,
    /// A host thread per CPU: real interleavings, no promise about times.
    Racing,
}

/// What the machine boots from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Media {
    /// A self-contained PVH program: no loader, no bundle.
    Program {
        /// ELF file with a PVH entry note.
        elf: PathBuf,
    },
    /// The direct-boot stub with a boot medium tree as its initial ramdisk.
    Direct {
        /// The stub (PVH ELF).
        stub: PathBuf,
        /// The tree as an uncompressed tar.
        bundle: PathBuf,
    },
    /// A hybrid image in a CD drive under UEFI.
    Cd {
        /// The image.
        iso: PathBuf,
        /// UEFI firmware.
        firmware: PathBuf,
    },
    /// The same image as a USB disk under UEFI.
    Usb {
        /// The image.
        iso: PathBuf,
        /// UEFI firmware.
        firmware: PathBuf,
    },
}

/// Where the two serial ports lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serial {
    /// Console text and records each to a file.
    Files {
        /// Takes COM1.
        console: PathBuf,
        /// Takes COM2.
        records: PathBuf,
    },
    /// The console on the terminal (Ctrl-A X leaves), records to a file.
    TerminalAndFile {
        /// Takes COM2.
        records: PathBuf,
    },
    /// The console on the terminal (Ctrl-A X leaves); records are dropped.
    Terminal,
}

/// Whether there is a screen and who sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Display {
    /// No graphics device.
    None,
    /// A graphics device nobody looks at, so that the guest has a framebuffer.
    Hidden,
    /// A graphics device shown to a VNC viewer: the pinned QEMU carries no desktop libraries.
    Vnc {
        /// The Unix socket the viewer opens.
        socket: PathBuf,
    },
}

/// A debugger's way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gdb {
    /// Port on the loopback interface.
    pub port: u16,
    /// Whether the guest waits for the debugger before its first instruction.
    pub wait: bool,
}

/// A machine to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// What it boots.
    pub media: Media,
    /// How time passes.
    pub lane: Lane,
    /// Number of CPUs.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// CPU model with its features, as `-cpu` takes it.
    pub cpu: String,
    /// Words added to the kernel's command line; only where QEMU hands one over.
    pub append: String,
    /// Where the serial ports lead.
    pub serial: Serial,
    /// The screen.
    pub display: Display,
    /// Debugger, if any.
    pub gdb: Option<Gdb>,
    /// Whether the emulator answers questions (QMP) on its standard input and output, which must
    /// not be a terminal's then.
    pub qmp: bool,
    /// Whether the guest can end the emulator through the exit port.
    pub exit_port: bool,
    /// Further arguments, last on the command line.
    pub extra: Vec<String>,
}

/// Why there is no command line for a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Under UEFI the command line is in the image.
    AppendUnderUefi,
    /// QEMU's option syntax takes a comma in a file name for its own.
    CommaInPath(PathBuf),
    /// A machine has at least one CPU.
    NoCpu,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::AppendUnderUefi => f.write_str(
                "words can be appended to the command line only in a direct boot; \
                 under UEFI they belong into the system's own cmdline",
            ),
            Refused::CommaInPath(path) => {
                write!(f, "{} has a comma in it, which QEMU cannot take", path.display())
            }
            Refused::NoCpu => f.write_str("a machine needs at least one CPU"),
        }
    }
}

impl Machine {
    /// A machine with the project's defaults: one CPU with everything the emulator has,
    /// 256 MiB, console on the terminal, racing lane, no screen, no exit port.
    pub fn new(media: Media) -> Machine {
        // UEFI firmware gives the guest a framebuffer only if there is a device for it.
        let display = match media {
            Media::Program { .. } | Media::Direct { .. } => Display::None,
            Media::Cd { .. } | Media::Usb { .. } => Display::Hidden,
        };
        Machine {
            media,
            lane: Lane::Racing,
            cpus: 1,
            memory_mib: 256,
            cpu: "max".into(),
            append: String::new(),
            serial: Serial::Terminal,
            display,
            gdb: None,
            qmp: false,
            exit_port: false,
            extra: Vec::new(),
        }
    }

    /// The arguments after the emulator's name.
    pub fn arguments(&self) -> Result<Vec<OsString>, Refused> {
        if self.cpus == 0 {
            return Err(Refused::NoCpu);
        }
        let mut line = Line(Vec::new());
        line.words("-no-user-config -nodefaults -no-reboot -machine").word(self.board());
        // A runner that is killed takes its guest along.
        line.words("-run-with exit-with-parent=on");
        line.words("-cpu").word(self.cpu_model());
        line.words("-m").word(format!("{}M", self.memory_mib));
        line.words("-smp").word(self.cpus.to_string());
        self.lane(&mut line);
        self.screen(&mut line)?;
        self.serial(&mut line)?;
        if self.exit_port {
            line.words("-device").word(format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=0x1"));
        }
        if self.qmp {
            line.words("-qmp stdio");
        }
        if let Some(Gdb { port, wait }) = self.gdb {
            line.words("-gdb").word(format!("tcp:127.0.0.1:{port}"));
            if wait {
                line.words("-S");
            }
        }
        self.media(&mut line)?;
        for extra in &self.extra {
            line.word(extra);
        }
        Ok(line.0)
    }

    /// The board. Without the SATA controller where nothing hangs on it: SeaBIOS waits for
    /// its ports, and under instruction counting waiting is work (0.9 s of it against 0.1 s).
    fn board(&self) -> &'static str {
        match self.media {
            Media::Program { .. } | Media::Direct { .. } => "q35,sata=off",
            Media::Cd { .. } | Media::Usb { .. } => "q35",
        }
    }

    /// The CPU. Under instruction counting without an x2APIC: its timer is written through MSRs, and
    /// QEMU ends with "Bad icount read" when a write to an MSR asks for the time. The same
    /// registers in memory work, and the racing lane has the x2APIC.
    fn cpu_model(&self) -> String {
        match self.lane {
            Lane::Deterministic if !self.cpu.contains("x2apic") => format!("{},-x2apic", self.cpu),
            Lane::Deterministic | Lane::Racing => self.cpu.clone(),
        }
    }

    fn lane(&self, line: &mut Line) {
        match self.lane {
            Lane::Deterministic => line.words(
                "-accel tcg,thread=single -icount shift=0,sleep=off -seed 1 \
                 -rtc base=2024-01-01T00:00:00,clock=vm",
            ),
            Lane::Racing => line.words("-accel tcg,thread=multi"),
        };
    }

    fn screen(&self, line: &mut Line) -> Result<(), Refused> {
        match &self.display {
            Display::None => {
                line.words("-display none");
            }
            Display::Hidden => {
                line.words("-display none -device VGA");
            }
            Display::Vnc { socket } => {
                line.words("-device VGA -display").file("vnc=unix:", socket)?;
            }
        }
        Ok(())
    }

    fn serial(&self, line: &mut Line) -> Result<(), Refused> {
        // QEMU numbers -serial options in order: COM1, then COM2.
        match &self.serial {
            Serial::Files { console, records } => {
                line.words("-monitor none");
                line.words("-serial").file("file:", console)?;
                line.words("-serial").file("file:", records)?;
            }
            Serial::TerminalAndFile { records } => {
                line.words("-serial mon:stdio");
                line.words("-serial").file("file:", records)?;
            }
            Serial::Terminal => {
                line.words("-serial mon:stdio -serial null");
            }
        }
        Ok(())
    }

    fn media(&self, line: &mut Line) -> Result<(), Refused> {
        match &self.media {
            Media::Program { elf } => {
                line.words("-kernel").word(elf);
                self.append(line);
            }
            Media::Direct { stub, bundle } => {
                line.words("-kernel").word(stub);
                // -initrd takes a comma as the start of another module.
                line.words("-initrd").file("", bundle)?;
                self.append(line);
            }
            Media::Cd { .. } | Media::Usb { .. } if !self.append.is_empty() => {
                return Err(Refused::AppendUnderUefi);
            }
            Media::Cd { iso, firmware } => {
                line.words("-bios").word(firmware);
                line.words("-drive").file("if=none,id=boot,media=cdrom,readonly=on,file=", iso)?;
                line.words("-device ide-cd,drive=boot,bootindex=0");
            }
            Media::Usb { iso, firmware } => {
                line.words("-bios").word(firmware);
                line.words("-drive").file("if=none,id=boot,format=raw,readonly=on,file=", iso)?;
                line.words("-device qemu-xhci -device usb-storage,drive=boot,bootindex=0");
            }
        }
        Ok(())
    }

    fn append(&self, line: &mut Line) {
        if !self.append.is_empty() {
            line.words("-append").word(&self.append);
        }
    }
}

/// A command line under construction.
struct Line(Vec<OsString>);

impl Line {
    fn words(&mut self, words: &str) -> &mut Line {
        self.0.extend(words.split_whitespace().map(OsString::from));
        self
    }

    fn word(&mut self, word: impl Into<OsString>) -> &mut Line {
        self.0.push(word.into());
        self
    }

    fn file(&mut self, before: &str, path: &Path) -> Result<(), Refused> {
        if path.as_os_str().as_encoded_bytes().contains(&b',') {
            return Err(Refused::CommaInPath(path.to_owned()));
        }
        let mut word = OsString::from(before);
        word.push(path);
        self.0.push(word);
        Ok(())
    }
}
