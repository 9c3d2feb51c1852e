//! What can stand at the end of a line: commands first, then what the command takes.

use core::fmt::Write;

use arrayvec::ArrayString;
use shell_edit::Candidates;

use crate::commands::{self, COMMANDS, Takes};
use crate::jobs::Jobs;
use crate::system::Program;

/// What there is to name now.
pub(crate) struct Words<'w> {
    pub(crate) programs: &'w [Program],
    pub(crate) jobs: &'w Jobs,
}

impl Words<'_> {
    fn programs(&self, each: &mut dyn FnMut(&str)) {
        self.programs.iter().for_each(|program| each(program.name));
    }

    fn jobs(&self, each: &mut dyn FnMut(&str)) {
        for job in self.jobs.iter() {
            let mut number = ArrayString::<24>::new();
            if write!(number, "{}", job.number).is_ok() {
                each(&number);
            }
        }
    }
}

impl Candidates for Words<'_> {
    fn each(&self, before: &str, each: &mut dyn FnMut(&str)) {
        let mut words = before.split(' ').filter(|word| !word.is_empty());
        // The last word is the one to complete, unless a blank ends it.
        let mut complete = words.clone().count();
        if !before.is_empty() && !before.ends_with(' ') {
            complete -= 1;
        }
        let mut command = None;
        let mut place = complete;
        // A command that takes a whole line is looked through.
        while place > 0 {
            command = words.next().and_then(commands::find);
            place -= 1;
            match command {
                Some(found) if found.takes == Takes::Line => command = None,
                Some(_) => break,
                None => return,
            }
        }
        match command.map(|command| command.takes) {
            None => {
                COMMANDS.iter().for_each(|command| each(command.name));
                self.programs(each);
            }
            Some(Takes::Command) if place == 0 => {
                COMMANDS.iter().for_each(|command| each(command.name));
            }
            Some(Takes::Program) if place == 0 => self.programs(each),
            Some(Takes::Job) if place == 0 => self.jobs(each),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::Process;
    use std::string::{String, ToString};
    use std::vec::Vec;

    #[test]
    fn what_can_be_completed_depends_on_the_command() {
        let mut jobs = Jobs::new();
        let _ = jobs.add("x", 1, Process(0));
        let programs = [Program { name: "primes", about: "" }];
        let words = Words { programs: &programs, jobs: &jobs };
        let of = |before: &str| {
            let mut found: Vec<String> = Vec::new();
            words.each(before, &mut |word| found.push(word.to_string()));
            found
        };
        for before in ["", "  ", "he", "time ", "time he", "time time "] {
            let found = of(before);
            assert_eq!(found.len(), COMMANDS.len() + 1, "{before}");
            assert!(found.iter().any(|word| word == "primes"));
        }
        assert_eq!(of("run "), ["primes"]);
        assert_eq!(of("time run pr"), ["primes"]);
        assert_eq!(of("kill "), ["1"]);
        assert_eq!(of("help r").len(), COMMANDS.len());
        for before in ["run primes ", "mem ", "primes ", "unknown ", "kill 1 "] {
            assert!(of(before).is_empty(), "{before}");
        }
    }
}
