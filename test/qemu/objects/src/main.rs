//! Objects of the kernel's that tell or give: as their holder sees them, and what a holder can do to others.
//!
//! * [`directory`]: ProcessDirectory. [`storm`]: the same while processes come and go.
//! * [`entropy`], [`clock`], [`session`]: Entropy, Timer.wallClock, UserSession.
#![no_std]
#![no_main]

mod clock;
mod directory;
mod entropy;
mod session;
mod storm;

use abi_types::{CapSlot, ExceptionKind};
use capos_rt::caller::{Caller, LARGE_WORDS};
use capos_rt::process::{Child, Command, DEFAULT_PROFILE, Processes, copied, own};
use capos_rt::{Env, Error};
use schema::manifest::ResourceProfile;
use schema::process_spawner_capnp::GrantSource;
use schema::{process_directory, user_session};
use schema_wire::CallError;
use test_bare::program::{Program, Sibling};
use test_kit::{Suite, T, Test};

capos_rt::main!(main);

/// What the tests share.
pub struct Shared {
    /// The program.
    pub program: Program,
    /// Starts children.
    pub processes: Processes,
    /// A ProcessDirectory.
    pub directory: CapSlot,
    /// An Entropy.
    pub entropy: CapSlot,
    /// The UserSession that began with this program.
    pub session: CapSlot,
}

/// A test.
pub type Run<'a> = T<'a, Shared>;

/// What a child of the tests may use.
pub const PROFILE: ResourceProfile = ResourceProfile {
    cap_slots: 16,
    threads: 8,
    kernel_stack_pages: 256,
    frames: 600,
    sleep_waiters: 8,
    ring_entries: 8,
    kernel_bytes: 131_072,
    ..DEFAULT_PROFILE
};

/// A client of a ProcessDirectory.
pub type Directory<'io> = process_directory::Client<Caller<'io, LARGE_WORDS>>;

impl Shared {
    /// Starts the worker under that name with these arguments and a Timer.
    pub fn child(&self, name: &str, arguments: &[&str]) -> Result<Child, CallError> {
        let threads = own("threads", GrantSource::ThreadSpawner);
        let control = own("control", GrantSource::ThreadControl);
        let grants = [copied("timer", self.program.timer), threads, control];
        let command = Command {
            arguments,
            grants: &grants,
            profile: PROFILE,
            ..Command::new(name, "worker.elf")
        };
        self.processes.spawn(self.program.io(), &command)
    }

    /// Calls on the directory.
    pub fn directory(&self) -> Directory<'static> {
        process_directory::Client::new(self.program.io().large(), self.directory)
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
    Test::new("directory.own", directory::own),
    Test::new("directory.children", directory::children),
    Test::new("directory.capabilities", directory::capabilities),
    Test::new("directory.wrong_arguments", directory::wrong_arguments),
    Test::new("directory.storm", storm::storm),
    Test::new("directory.endless_readers", storm::endless_readers),
    Test::new("clock.wall_clock", clock::wall_clock),
    Test::new("entropy.arguments", entropy::arguments),
    Test::new("entropy.never_twice", entropy::never_twice),
    Test::new("session.counts", session::counts),
    Test::new("session.login", session::login),
    Test::new("session.logout", session::logout),
]);

fn main(env: &'static Env) -> Result<(), Error> {
    let program = Program::new(env, &SIBLINGS)?;
    let processes = Processes::of(&env.caps)?;
    let directory = env.cap("directory", process_directory::INTERFACE_ID)?;
    let entropy = env.cap("entropy", schema::entropy::INTERFACE_ID)?;
    let session = env.cap("session", user_session::INTERFACE_ID)?;
    test_user::run_with(
        env,
        &SUITE,
        &mut Shared { program, processes, directory, entropy, session },
    )
}
