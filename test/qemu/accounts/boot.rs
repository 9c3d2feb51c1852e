//! A boot of one of the systems here, for what it says on the console.

use std::path::PathBuf;

use abi_report::Exit;
use qemu_command::{Lane, Machine, Media, Serial};

fn input(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set")))
}

/// What a boot said on the console.
pub fn boot(name: &str, lane: Lane, cpus: u32) -> String {
    let folder = PathBuf::from(std::env::var("TEST_TMPDIR").expect("run by bazel"));
    // Tests of one program run at the same time.
    let file = folder.join(format!("{name}_{cpus}"));
    let (console, records) = (file.with_extension("log"), file.with_extension("records"));
    let upper = name.to_uppercase();
    let media = Media::Direct {
        stub: input(&format!("{upper}_STUB")),
        bundle: input(&format!("{upper}_BUNDLE")),
    };
    let mut machine = Machine::new(media);
    machine.lane = lane;
    machine.cpus = cpus;
    machine.append = "exit=debug".into();
    machine.exit_port = true;
    machine.serial = Serial::Files { console: console.clone(), records };
    let status = test_boot::run(&machine);
    let console = std::fs::read(&console).unwrap_or_default();
    let console = String::from_utf8_lossy(&console).into_owned();
    assert_eq!(status, Some(Exit::Pass.qemu_status()), "{name}: {console}");
    console
}
