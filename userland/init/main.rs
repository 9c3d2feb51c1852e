//! init: starts the services that its entry in the manifest names, in order, and starts again what fails, within the
//! limits that are given there.
//!
//! Its exit code is the system's: that of the essential service that ended, or 1 for one that was given up; without
//! one, 0 once nothing runs any more.
#![no_std]
#![no_main]

use arrayvec::ArrayVec;
use capos_rt::process::{Child, Processes};
use capos_rt::{Env, Error, Pending, now_ns, println};
use init_core::{End, Service, Supervisor, Verdict};
use schema::process_handle::methods::Wait;
use schema::process_handle::{WaitParams, WaitResults};
use schema::process_handle_capnp::ExitReason;
use schema::timer::{self, SleepParams, methods::Sleep};

capos_rt::main!(main);

/// Services at most: for each one operation of the thread's is under way.
const MOST_SERVICES: usize = 12;

/// What init waits for, of one service.
enum State {
    /// That it ends.
    Runs(Child, Pending),
    /// That its pause is over.
    Pauses(Pending),
    /// Nothing any more.
    Gone,
}

/// A service and where it is.
struct Supervised {
    service: Service<'static>,
    supervisor: Supervisor,
    state: State,
}

struct Init {
    env: &'static Env,
    processes: Processes,
    timer: abi_types::CapSlot,
}

fn main(env: &'static Env) -> Result<i64, Error> {
    let processes = Processes::of(&env.caps)?;
    let timer = env.cap("timer", timer::INTERFACE_ID)?;
    let init = Init { env, processes, timer };
    let mut all = ArrayVec::<Supervised, MOST_SERVICES>::new();
    for line in env.arguments() {
        let service = match Service::of(line) {
            Ok(service) => service,
            Err(unclear) => {
                println!(env, "init: in \"{line}\": {unclear}");
                return Ok(1);
            }
        };
        if all.is_full() {
            println!(env, "init: {MOST_SERVICES} services are as many as it starts");
            return Ok(1);
        }
        let mut one = Supervised { service, supervisor: Supervisor::new(), state: State::Gone };
        if let Some(code) = init.start(&mut one) {
            return Ok(code);
        }
        all.push(one);
    }
    while let Some(one) = init.wait(&mut all) {
        if let Some(code) = init.go_on(one) {
            return Ok(code);
        }
    }
    Ok(0)
}

impl Init {
    /// Waits until something has come of one of them; that one. None if there is nothing to wait for.
    fn wait<'a>(&self, all: &'a mut [Supervised]) -> Option<&'a mut Supervised> {
        let mut among = ArrayVec::<&Pending, MOST_SERVICES>::new();
        let mut places = ArrayVec::<usize, MOST_SERVICES>::new();
        for (place, one) in all.iter().enumerate() {
            match &one.state {
                State::Runs(_, pending) | State::Pauses(pending) => {
                    among.push(pending);
                    places.push(place);
                }
                State::Gone => {}
            }
        }
        if among.is_empty() {
            return None;
        }
        let first = self.env.io.wait_any(&among);
        drop(among);
        let place = *places.get(first)?;
        all.get_mut(place)
    }

    /// What follows from what has come; the system's exit code if that is its end.
    fn go_on(&self, one: &mut Supervised) -> Option<i64> {
        match core::mem::replace(&mut one.state, State::Gone) {
            State::Runs(child, pending) => {
                let ended = self.env.io.finish::<Wait, WaitResults>(pending, |ended| ended);
                // A slot that stays taken harms nobody as much as an init that ends.
                let _released = child.release(&self.env.io);
                let end = match ended {
                    Ok(WaitResults { exit_code, reason: ExitReason::Exited }) => {
                        End::Exited(exit_code)
                    }
                    Ok(WaitResults { exit_code, .. }) => End::Broken(exit_code),
                    Err(_) => End::NotStarted,
                };
                self.judge(one, end)
            }
            State::Pauses(pending) => {
                self.env.io.forget(pending);
                self.start(one)
            }
            State::Gone => None,
        }
    }

    /// Starts a service; the system's exit code if that cannot be and is its end.
    fn start(&self, one: &mut Supervised) -> Option<i64> {
        let io = &self.env.io;
        let name = one.service.name;
        let started = self.processes.start_entry(io, name).and_then(|child| {
            match io.start::<Wait>(child.slot(), &WaitParams {}) {
                Ok(pending) => Ok((child, pending)),
                Err(status) => Err(status.into()),
            }
        });
        match started {
            Ok((child, pending)) => {
                one.state = State::Runs(child, pending);
                None
            }
            Err(error) => {
                println!(self.env, "init: {name} does not start: {error}");
                self.judge(one, End::NotStarted)
            }
        }
    }

    /// What becomes of a service that ended, said and begun.
    fn judge(&self, one: &mut Supervised, end: End) -> Option<i64> {
        let Supervised { service, supervisor, state } = one;
        let name = service.name;
        let verdict = supervisor.ended(service, end, now_ns());
        match end {
            End::Exited(code) if end.is_failure() => {
                println!(self.env, "init: {name} failed, with code {code}");
            }
            End::Broken(code) => println!(self.env, "init: {name} broke, with code {code}"),
            End::Exited(_) | End::NotStarted => {}
        }
        match verdict {
            Verdict::Restart { pause_ns } => {
                println!(self.env, "init: {name} starts again in {} ms", pause_ns / 1_000_000);
                match self.env.io.start::<Sleep>(self.timer, &SleepParams { ns: pause_ns }) {
                    Ok(pending) => *state = State::Pauses(pending),
                    Err(status) => println!(self.env, "init: no pause for {name}: {status:?}"),
                }
                None
            }
            Verdict::Done => None,
            Verdict::GivenUp => {
                println!(self.env, "init: {name} is given up, it failed too often");
                None
            }
            Verdict::EndSystem(code) => {
                if end.is_failure() {
                    println!(
                        self.env,
                        "init: {name} is essential and is given up: the system ends"
                    );
                }
                Some(code)
            }
        }
    }
}
