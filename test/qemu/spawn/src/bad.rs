//! Executables that are none: each is refused with the sentence of what is wrong with it.

use abi_types::ExceptionKind;
use capos_rt::process::Command;
use schema_wire::CallError;
use test_kit::{Outcome, check_eq, require_some};

use crate::{PROFILE, Run};

/// Boot modules, and words of the sentences that they are refused with; made by `bad/main.rs`, in its order.
const FILES: [(&str, &str); 26] = [
    ("bad0.bin", "has 63 bytes"),
    ("bad1.bin", "not an ELF file"),
    ("bad2.bin", "class 1"),
    ("bad3.bin", "data encoding 2"),
    ("bad4.bin", "ELF version 0"),
    ("bad5.bin", "system ABI 9"),
    ("bad6.bin", "machine 183"),
    ("bad7.bin", "position independent"),
    ("bad8.bin", "ELF type 1"),
    ("bad9.bin", "program headers of 32 bytes"),
    ("bad10.bin", "65 program headers"),
    ("bad11.bin", "past the end of the file"),
    ("bad12.bin", "dynamic linker"),
    ("bad13.bin", "dynamic section"),
    ("bad14.bin", "executable stack"),
    ("bad15.bin", "takes no memory"),
    ("bad16.bin", "larger in the file"),
    ("bad17.bin", "past the end of the file"),
    ("bad18.bin", "writable and executable"),
    ("bad19.bin", "differ modulo"),
    ("bad20.bin", "no executable segment"),
    ("bad21.bin", "thread-local data aligned"),
    ("bad22.bin", "more than 1024 MiB"),
    ("bad23.bin", "made for ABI 99"),
    ("bad24.bin", "no note says which ABI"),
    ("bad25.bin", "a note of the ABI has 3 bytes"),
];

/// Every kind, and frames and slots are as before.
pub fn all(t: &mut Run<'_>) -> Outcome {
    let io = t.env.program.io();
    t.env.program.sleep(20_000_000);
    let before = t.env.program.free_frames();
    for (binary, words) in FILES {
        let command = Command { profile: PROFILE, ..Command::new("bad", binary) };
        match t.env.processes.spawn(io, &command) {
            Err(CallError::Exception(exception))
                if exception.kind() == ExceptionKind::Failed
                    && exception.message().contains(words) => {}
            other => return t.fail(format_args!("{binary} ({words}): {other:?}")),
        }
    }
    check_eq!(t, t.env.program.until_frames(before), before);
    check_eq!(t, require_some!(t, t.env.machine()).accounts_not_zero, 0);
    Ok(())
}
