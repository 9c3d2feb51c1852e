//! The pauser against a process whose threads are named as CPUs: it finds those, stops one and no
//! other, and lets it go; where the host refuses, it says so.

use load::chance::Chance;
use load::pauser::{Pauser, Stopped, Tally};
use load::threads::{cpu_threads, state};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

struct StandIn {
    child: Child,
    ask: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    cpus: Vec<Pid>,
}

impl StandIn {
    fn start() -> StandIn {
        let mut child = Command::new(std::env::var_os("STAND_IN").unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut stand_in = StandIn { child, ask, answers, cpus: Vec::new() };
        for cpu in 0..3 {
            stand_in.answer(cpu);
        }
        // Each thread has answered, so each has its name.
        stand_in.cpus = cpu_threads(stand_in.pid());
        assert_eq!(stand_in.cpus.len(), 3);
        stand_in
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    fn ask(&mut self, cpu: usize) {
        writeln!(self.ask.as_mut().unwrap(), "{cpu}").unwrap();
    }

    /// Asks a CPU and waits for it, however long that takes.
    fn answer(&mut self, cpu: usize) {
        self.ask(cpu);
        assert_eq!(self.line(), cpu.to_string());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.ask = None;
        self.child.wait().unwrap();
    }
}

#[test]
fn cpus_are_found_below_a_process_and_not_elsewhere() {
    let (one, other) = (StandIn::start(), StandIn::start());
    let all = cpu_threads(Pid::this());
    assert!(one.cpus.iter().chain(&other.cpus).all(|cpu| all.contains(cpu)), "{all:?}");
    assert!(one.cpus.iter().all(|cpu| !other.cpus.contains(cpu)));
}

#[test]
fn one_cpu_stands_still_and_the_others_answer() {
    let mut stand_in = StandIn::start();
    let cpus = stand_in.cpus.clone();
    let stopped = Stopped::stop(cpus[1]).unwrap().unwrap();
    assert_eq!(state(cpus[1]), Some('t'));
    // What is asked of it waits; the others come first, though they are asked later.
    stand_in.ask(1);
    stand_in.answer(0);
    stand_in.answer(2);
    assert_eq!(state(cpus[1]), Some('t'));
    drop(stopped);
    assert_eq!(stand_in.line(), "1");
    assert_ne!(state(cpus[1]), Some('t'));
}

#[test]
fn a_thread_that_is_gone_is_no_refusal() {
    let mut stand_in = StandIn::start();
    let cpu = stand_in.cpus[0];
    stand_in.ask = None;
    stand_in.child.wait().unwrap();
    assert!(Stopped::stop(cpu).unwrap().is_none());
}

#[test]
fn a_process_that_is_killed_while_a_cpu_stands_still_is_gone_at_once() {
    let mut stand_in = StandIn::start();
    let stopped = Stopped::stop(stand_in.cpus[0]).unwrap().unwrap();
    kill(stand_in.pid(), Signal::SIGKILL).unwrap();
    drop(stopped);
    stand_in.child.wait().unwrap();
}

#[test]
fn the_pauser_stops_cpus_again_and_again_and_leaves_them_running() {
    let mut stand_in = StandIn::start();
    let pauser = Pauser::start(stand_in.pid(), Duration::from_millis(2), Chance::new(1, &[]));
    // Each CPU is seen standing still once, however long that takes, and answers all the same.
    for cpu in 0..3 {
        while state(stand_in.cpus[cpu]) != Some('t') {
            stand_in.answer(cpu);
        }
        stand_in.answer(cpu);
    }
    let tally = pauser.end();
    assert!(tally.pauses >= 3 && tally.refusal.is_none(), "{tally:?}");
    for cpu in 0..3 {
        assert_ne!(state(stand_in.cpus[cpu]), Some('t'));
        stand_in.answer(cpu);
    }
}

#[test]
fn a_refusal_is_told_and_ends_the_pauses() {
    // A thread has one tracer at most, so a second one meets what a sandbox answers.
    let stand_in = StandIn::start();
    let cpus = stand_in.cpus.clone();
    let (held, is_held) = channel();
    let (release, released) = channel::<()>();
    let tracer = thread::spawn(move || {
        let stopped: Vec<_> = cpus.iter().map(|cpu| Stopped::stop(*cpu).unwrap()).collect();
        held.send(()).unwrap();
        let _ = released.recv();
        drop(stopped);
    });
    is_held.recv().unwrap();
    let pauser = Pauser::start(stand_in.pid(), Duration::from_millis(2), Chance::new(1, &[]));
    while !pauser.has_given_up() {
        thread::yield_now();
    }
    assert_eq!(pauser.end(), Tally { pauses: 0, refusal: Some(Errno::EPERM) });
    release.send(()).unwrap();
    tracer.join().unwrap();
}
