//! A process with threads that are named as an emulator's CPUs, each of which answers.
//!
//! Each line of standard input is a CPU's number; that CPU's thread writes the number back.
//! CPU threads wait in the kernel in between, as a halted CPU does. The process ends with its input.

use std::io::{BufRead, Write, stdin, stdout};
use std::sync::mpsc::{Sender, channel};
use std::thread;

const CPUS: usize = 3;

fn main() {
    let cpus: Vec<Sender<()>> = (0..CPUS)
        .map(|cpu| {
            let (ask, asked) = channel();
            thread::Builder::new()
                .name(format!("CPU {cpu}/TCG"))
                .spawn(move || {
                    while asked.recv().is_ok() {
                        let mut out = stdout().lock();
                        writeln!(out, "{cpu}").and_then(|()| out.flush()).expect("somebody reads");
                    }
                })
                .expect("a thread");
            ask
        })
        .collect();
    for line in stdin().lock().lines() {
        let cpu: usize = line.expect("text").trim().parse().expect("the number of a CPU");
        cpus[cpu].send(()).expect("CPU threads stay");
    }
}
