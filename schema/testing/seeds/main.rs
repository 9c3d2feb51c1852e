//! Writes good calls of every method as inputs for the fuzz target, into the folder of its
//! argument: where fuzzing starts when there are new interfaces.

use schema::INTERFACES;
use schema_testing::calls;
use std::path::PathBuf;

/// Words the caller can take.
const ROOM: u8 = 128;

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| std::io::Error::other("give a folder to write to"))?;
    for number in 1..=2 {
        for call in calls(number) {
            let position = INTERFACES.iter().position(|one| one.id == call.interface);
            let (Some(position), Ok(method)) = (position, u8::try_from(call.method)) else {
                return Err(std::io::Error::other(format!("{} is not in the schema", call.name)));
            };
            let mut input = vec![position as u8, method, ROOM];
            input.extend(call.params.bytes());
            std::fs::write(folder.join(format!("{}_{number}", call.name)), input)?;
        }
    }
    Ok(())
}
