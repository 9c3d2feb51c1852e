//! The emulator's CPU threads, found from outside: below a process, by name, in /proc.

use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The threads that are CPUs of an emulator which is `root` or a descendant, lowest CPU first.
///
/// QEMU names them `CPU 0/TCG`, `CPU 1/TCG` and so on.
pub fn cpu_threads(root: Pid) -> Vec<Pid> {
    let parents = parents();
    let is_below = |mut pid: i32| {
        while pid != root.as_raw() {
            let Some(&parent) = parents.get(&pid) else { return false };
            pid = parent;
        }
        true
    };
    let mut found: Vec<(u32, Pid)> = Vec::new();
    for &pid in parents.keys().filter(|&&pid| is_below(pid)) {
        for tid in numbers_in(format!("/proc/{pid}/task")) {
            let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"));
            if let Some(cpu) = name.ok().as_deref().and_then(cpu_of) {
                found.push((cpu, Pid::from_raw(tid)));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, tid)| tid).collect()
}

/// The CPU whose thread has this name.
fn cpu_of(name: &str) -> Option<u32> {
    name.trim_end().strip_prefix("CPU ")?.strip_suffix("/TCG")?.parse().ok()
}

/// The state letter of a thread (proc(5)): `t` while a tracer has stopped it. None: it is gone.
pub fn state(tid: Pid) -> Option<char> {
    fs::read_to_string(format!("/proc/{tid}/stat"))
        .ok()
        .as_deref()
        .and_then(state_and_parent)
        .map(|of| of.0)
}

fn parents() -> HashMap<i32, i32> {
    let parent = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, state_and_parent(&stat)?.1))
    };
    numbers_in("/proc").into_iter().filter_map(parent).collect()
}

/// State and parent out of a stat line; the name before them may hold anything, also brackets.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}

fn numbers_in(folder: impl AsRef<Path>) -> Vec<i32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulators_cpus_have_names() {
        assert_eq!(cpu_of("CPU 0/TCG\n"), Some(0));
        assert_eq!(cpu_of("CPU 31/TCG\n"), Some(31));
        for other in ["qemu-system-x86", "CPU 0/KVM", "CPU x/TCG", "call_rcu"] {
            assert_eq!(cpu_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_with_brackets_does_not_hide_state_and_parent() {
        assert_eq!(state_and_parent("12 (a) b) (c)) t 7 12 12 0"), Some(('t', 7)));
        assert_eq!(state_and_parent("nonsense"), None);
    }
}
