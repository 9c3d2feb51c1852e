//! Programs start programs: spawn, wait, kill, and what is left afterwards.
//!
//! * [`starts`]: what a child starts with, right and wrong arguments, entries of the manifest.
//! * [`ends`]: exit codes, faults, kills, waits, and that everything comes back.
//! * [`bad`]: executables that are none. [`images`]: programs in memory objects.
#![no_std]
#![no_main]

mod bad;
mod ends;
mod images;
mod starts;

use abi_types::{CapSlot, ExceptionKind};
use capos_rt::process::{Child, Command, DEFAULT_PROFILE, Processes};
use capos_rt::{Env, Error};
use schema::manifest::ResourceProfile;
use schema::system_info::{self, Machine};
use schema::{frame_allocator, process_spawner, timer};
use schema_wire::CallError;
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, T, Test};

capos_rt::main!(main);

/// What the tests share.
pub struct Shared {
    /// The program.
    pub program: Program,
    /// The authority under test.
    pub processes: Processes,
    /// Its slot.
    pub spawner: CapSlot,
    /// A Timer.
    pub timer: CapSlot,
    /// A FrameAllocator, in the suite that is not about costs.
    pub frames: CapSlot,
}

/// A test.
pub type Run<'a> = T<'a, Shared>;

/// What a child of the tests may use.
pub const PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 16,
    threads: 20,
    kernel_stack_pages: 640,
    frames: 600,
    sleep_waiters: 20,
    ring_entries: 8,
    kernel_bytes: 131_072,
    ..DEFAULT_PROFILE
};

impl Shared {
    /// Starts `child.elf` with these arguments and a Timer.
    pub fn child(&self, arguments: &[&str]) -> Result<Child, CallError> {
        let grants = [capos_rt::process::copied("timer", self.timer)];
        let command = Command {
            arguments,
            grants: &grants,
            profile: PROFILE,
            ..Command::new("child", "child.elf")
        };
        self.processes.spawn(&self.program.env.io, &command)
    }

    /// The machine's counters.
    pub fn machine(&self) -> Option<Machine> {
        let mut info = system_info::Client::new(self.program.io().caller(), self.program.info);
        info.machine().ok().map(|found| found.machine)
    }
}

/// The kind of the exception that a call was refused with.
pub fn kind_of<R>(result: &Result<R, CallError>) -> Option<ExceptionKind> {
    match result {
        Err(CallError::Exception(exception)) => Some(exception.kind()),
        _ => None,
    }
}

static SIBLINGS: [Sibling; 4] = [const { Sibling::new() }; 4];

const SUITE: Suite<Shared> = Suite::new(&[
    Test::new("spawn.own_arguments", starts::own_arguments),
    Test::new("spawn.exit_code", ends::exit_code),
    Test::new("spawn.starts_with", starts::starts_with),
    Test::new("spawn.wrong_arguments", starts::wrong_arguments),
    Test::new("spawn.grants", starts::grants),
    Test::new("spawn.lent", starts::lent),
    Test::new("spawn.entries", starts::entries),
    Test::new("spawn.bad_executables", bad::all),
    Test::new("spawn.image_runs", images::runs),
    Test::new("spawn.image_wrong", images::wrong),
    Test::new("spawn.image_changes", images::changes),
    Test::new("spawn.fault_of_a_child", ends::fault),
    Test::new("spawn.kill", ends::kill),
    Test::new("spawn.waits", ends::waits),
    Test::new("spawn.handles", ends::handles),
    Test::new("spawn.orphans", ends::orphans),
    Test::new("spawn.bomb", ends::bomb),
    Test::new("spawn.races", ends::races),
    Test::new("spawn.nothing_is_left", ends::nothing_is_left),
]);

/// Where instructions are counted.
const COSTS: Suite<Shared> = Suite::new(&[Test::new("spawn.cost", ends::cost)]);

fn main(env: &'static Env) -> Result<(), Error> {
    let program = Program::new(env, &SIBLINGS)?;
    let processes = Processes::of(&env.caps)?;
    let spawner = env.cap("processes", process_spawner::INTERFACE_ID)?;
    let timer = env.cap("timer", timer::INTERFACE_ID)?;
    let frames = env.cap("frames", frame_allocator::INTERFACE_ID).unwrap_or(CapSlot::NONE);
    let suite = if env.variable("LANE") == Some("exact") { &COSTS } else { &SUITE };
    test_user::run_with(env, suite, &mut Shared { program, processes, spawner, timer, frames })
}
