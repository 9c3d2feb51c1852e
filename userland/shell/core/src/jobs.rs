//! The programs that the shell started.

use arrayvec::{ArrayString, ArrayVec};

use crate::system::Process;
use crate::text::Ended;

/// Programs at most: each has an operation of the shell's ring under way that waits for its end.
pub const MOST_JOBS: usize = 12;

/// The longest name that a process may have.
pub const NAME_BYTES: usize = 44;

/// A program that was started.
#[derive(Clone, Debug)]
pub struct Job {
    /// What people say when they mean it; no two ever have the same.
    pub number: u64,
    /// What it is called.
    pub name: ArrayString<NAME_BYTES>,
    /// What its console calls arrive with.
    pub badge: u64,
    /// The process.
    pub process: Process,
    /// How it ended, once it has.
    pub ended: Option<Ended>,
    /// Whether a person was told of the end.
    pub is_told: bool,
}

/// The programs that were started, in order.
#[derive(Debug, Default)]
pub struct Jobs {
    jobs: ArrayVec<Job, MOST_JOBS>,
    last_number: u64,
}

impl Jobs {
    /// Nothing was started yet.
    pub const fn new() -> Self {
        Self { jobs: ArrayVec::new_const(), last_number: 0 }
    }

    /// Whether there is a place for one more; one that has ended gives its up.
    pub fn has_room(&self) -> bool {
        !self.jobs.is_full() || self.jobs.iter().any(|job| job.ended.is_some())
    }

    /// The number that the next one gets.
    pub const fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// One more was started; its number. The one that gave up its place, if any, whose process is to be forgotten.
    pub fn add(&mut self, name: &str, badge: u64, process: Process) -> (u64, Option<Process>) {
        let mut given_up = None;
        if self.jobs.is_full()
            && let Some(index) = self.jobs.iter().position(|job| job.ended.is_some())
        {
            given_up = Some(self.jobs.remove(index).process);
        }
        self.last_number += 1;
        let mut kept = ArrayString::new();
        name.chars().for_each(|character| {
            let _cut = kept.try_push(character);
        });
        let number = self.last_number;
        let job = Job { number, name: kept, badge, process, ended: None, is_told: false };
        let _room_was_asked_for = self.jobs.try_push(job);
        (number, given_up)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// The one with this number.
    pub fn find(&self, number: u64) -> Option<&Job> {
        self.jobs.iter().find(|job| job.number == number)
    }

    /// The one that is this process.
    pub fn of(&self, process: Process) -> Option<&Job> {
        self.jobs.iter().find(|job| job.process == process)
    }

    /// A process is gone; its job.
    pub fn end(&mut self, process: Process, ended: Ended) -> Option<&Job> {
        let job = self.jobs.iter_mut().find(|job| job.process == process && job.ended.is_none())?;
        job.ended = Some(ended);
        Some(job)
    }

    /// One that has ended and of which nobody was told; from now on somebody was.
    pub fn tell(&mut self) -> Option<&Job> {
        let job = self.jobs.iter_mut().find(|job| job.ended.is_some() && !job.is_told)?;
        job.is_told = true;
        Some(job)
    }

    /// The one with this number is listed no more.
    pub fn remove(&mut self, number: u64) -> Option<Job> {
        let index = self.jobs.iter().position(|job| job.number == number)?;
        Some(self.jobs.remove(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schema::process_handle_capnp::ExitReason;

    const WELL: Ended = Ended { code: 0, reason: ExitReason::Exited };

    #[test]
    fn a_job_that_has_ended_gives_its_place_up_and_numbers_are_never_used_twice() {
        let mut jobs = Jobs::default();
        for index in 0..MOST_JOBS {
            assert!(jobs.has_room());
            assert_eq!(jobs.add("x", 1, Process(index)), (index as u64 + 1, None));
        }
        assert!(!jobs.has_room());
        assert_eq!(jobs.end(Process(3), WELL).map(|job| job.number), Some(4));
        assert!(jobs.end(Process(3), WELL).is_none());
        assert_eq!(jobs.add("y", 1, Process(99)), (13, Some(Process(3))));
        assert!(jobs.find(4).is_none() && !jobs.has_room());
        assert_eq!(jobs.remove(13).map(|job| job.process), Some(Process(99)));
        assert_eq!(jobs.next_number(), 14);
    }

    #[test]
    fn a_name_is_cut_at_a_character() {
        let mut jobs = Jobs::default();
        let (number, _) = jobs.add(&"é".repeat(40), 1, Process(0));
        assert_eq!(jobs.find(number).unwrap().name.as_str(), "é".repeat(22));
    }
}
