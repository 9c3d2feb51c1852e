//! Every lifecycle event in every stage, and every order of events up to a length.

use core_thread::*;

const OWN: ThreadKey = ThreadKey { slot: 4, generation: 2 };
const A: Joiner = Joiner { thread: ThreadKey { slot: 5, generation: 1 }, user_data: 10 };
const B: Joiner = Joiner { thread: ThreadKey { slot: 6, generation: 1 }, user_data: 11 };
const SELF: Joiner = Joiner { thread: OWN, user_data: 12 };

type Apply = fn(&mut Lifecycle) -> String;

fn text<V: core::fmt::Debug, E: core::fmt::Debug>(result: Result<V, E>) -> String {
    match result {
        Ok(verdict) => format!("{verdict:?}"),
        Err(error) => format!("!{error:?}"),
    }
}

/// What a verdict comes to, in short.
fn exit_text(result: Result<ExitVerdict, LifecycleError>) -> String {
    match result {
        Ok(v) => format!(
            "{}{}",
            if v.complete.is_some() { "completes " } else { "" },
            if v.ends_charge { "ends" } else { "stays" }
        ),
        Err(error) => format!("!{error:?}"),
    }
}

fn release_text<E: core::fmt::Debug>(result: Result<ReleaseVerdict, E>) -> String {
    match result {
        Ok(v) => if v.ends_charge { "ends" } else { "stays" }.into(),
        Err(error) => format!("!{error:?}"),
    }
}

const EVENTS: [(&str, Apply); 10] = [
    ("exit", |l| exit_text(l.exit(3))),
    ("join", |l| text(l.join(B))),
    ("self-join", |l| text(l.join(SELF))),
    ("cancel", |l| text(l.cancel_join(A))),
    ("cancel of another", |l| text(l.cancel_join(B))),
    ("detach", |l| release_text(l.detach())),
    ("copy", |l| text(l.add_handle())),
    ("release", |l| release_text(l.release_handle())),
    ("code", |l| text(l.exit_code())),
    ("charged", |l| l.is_charged().to_string()),
];

fn made(steps: &[Apply]) -> Lifecycle {
    let mut lifecycle = Lifecycle::new(OWN);
    for step in steps {
        let said = step(&mut lifecycle);
        assert!(!said.starts_with('!'), "set-up step refused: {said}");
    }
    lifecycle
}

#[test]
fn every_event_in_every_stage() {
    let join_a: Apply = |l| text(l.join(A));
    let detach: Apply = |l| release_text(l.detach());
    let release: Apply = |l| release_text(l.release_handle());
    let exit: Apply = |l| exit_text(l.exit(3));
    let copy: Apply = |l| text(l.add_handle());
    #[rustfmt::skip]
    let table: [(&str, Lifecycle, [&str; 10]); 13] = [
        // exit, join, self-join, cancel, cancel of another, detach, copy, release, code, charged
        ("live", made(&[]),
         ["stays", "Pending", "!SelfJoin", "!NotFound", "!NotFound", "stays", "()", "stays", "None", "true"]),
        ("live, two handles", made(&[copy]),
         ["stays", "Pending", "!SelfJoin", "!NotFound", "!NotFound", "stays", "()", "stays", "None", "true"]),
        ("live, pending", made(&[join_a]),
         ["completes ends", "!SecondWaiter", "!SelfJoin", "()", "!NotFound", "stays", "()", "stays", "None", "true"]),
        ("live, detached", made(&[detach]),
         ["ends", "!Detached", "!Detached", "!NotFound", "!NotFound", "!Detached", "()", "stays", "None", "true"]),
        ("live, pending, detached", made(&[join_a, detach]),
         ["completes ends", "!Detached", "!Detached", "()", "!NotFound", "!Detached", "()", "stays", "None", "true"]),
        ("live, released", made(&[release]),
         ["ends", "!Detached", "!Detached", "!NotFound", "!NotFound", "!Detached", "!NoHandle", "!NoHandle", "None", "true"]),
        ("live, pending, released", made(&[join_a, release]),
         ["completes ends", "!Detached", "!Detached", "()", "!NotFound", "!Detached", "!NoHandle", "!NoHandle", "None", "true"]),
        ("exited", made(&[exit]),
         ["!ExitedTwice", "Done { code: 3 }", "!SelfJoin", "!NotFound", "!NotFound", "ends", "()", "ends", "Some(3)", "true"]),
        ("exited, two handles", made(&[copy, exit]),
         ["!ExitedTwice", "Done { code: 3 }", "!SelfJoin", "!NotFound", "!NotFound", "ends", "()", "stays", "Some(3)", "true"]),
        ("ended by a pending join", made(&[join_a, exit]),
         ["!ExitedTwice", "!AlreadyJoined", "!AlreadyJoined", "!NotFound", "!NotFound", "!AlreadyJoined", "()", "stays", "!AlreadyJoined", "false"]),
        ("ended by a later join", made(&[exit, join_a]),
         ["!ExitedTwice", "!AlreadyJoined", "!AlreadyJoined", "!NotFound", "!NotFound", "!AlreadyJoined", "()", "stays", "!AlreadyJoined", "false"]),
        ("ended by a detach", made(&[exit, detach]),
         ["!ExitedTwice", "!Detached", "!Detached", "!NotFound", "!NotFound", "!Detached", "()", "stays", "!Detached", "false"]),
        ("ended by the release", made(&[exit, release]),
         ["!ExitedTwice", "!Detached", "!Detached", "!NotFound", "!NotFound", "!Detached", "!NoHandle", "!NoHandle", "!Detached", "false"]),
    ];
    for (stage, lifecycle, row) in table {
        for ((event, apply), expected) in EVENTS.iter().zip(row) {
            let mut after = lifecycle;
            let said = apply(&mut after);
            assert_eq!(said, expected, "{event} when {stage}");
            after.check_invariants().unwrap();
            if said.starts_with('!') {
                assert_eq!(after, lifecycle, "refused {event} when {stage} changed the record");
            }
        }
    }
}

/// The rule in the requirement's own words, over the history of accepted events.
#[derive(Clone, Default)]
struct History {
    exited: bool,
    joined: bool,
    detached: bool,
    handles: u32,
    pending: bool,
}

impl History {
    fn is_due(&self) -> bool {
        self.exited && (self.handles == 0 || self.detached || self.joined) && !self.pending
    }
}

/// T8: whatever the order, the charge ends exactly once, at the last of its three conditions.
#[test]
fn in_every_order_the_charge_ends_once_and_at_the_right_moment() {
    fn walk(lifecycle: Lifecycle, history: History, ended: u32, depth: u32, paths: &mut u64) {
        assert_eq!(ended, u32::from(history.is_due()), "{lifecycle:?}");
        assert_eq!(lifecycle.is_charged(), ended == 0);
        assert_eq!(lifecycle.is_over(), ended == 1 && history.handles == 0);
        lifecycle.check_invariants().unwrap();
        *paths += 1;
        if depth == 0 {
            return;
        }
        for event in 0..7 {
            let (mut l, mut h, mut e) = (lifecycle, history.clone(), ended);
            let accepted = match event {
                0 => l
                    .exit(9)
                    .map(|v| {
                        assert_eq!(v.complete.is_some(), h.pending);
                        h.joined |= h.pending;
                        (h.exited, h.pending) = (true, false);
                        e += u32::from(v.ends_charge);
                    })
                    .is_ok(),
                1 => l
                    .join(A)
                    .map(|v| match v {
                        JoinVerdict::Pending => h.pending = true,
                        JoinVerdict::Done { code } => {
                            assert_eq!(code, 9);
                            h.joined = true;
                            e += 1;
                        }
                    })
                    .is_ok(),
                2 => l.cancel_join(A).map(|()| h.pending = false).is_ok(),
                3 => l
                    .detach()
                    .map(|v| {
                        h.detached = true;
                        e += u32::from(v.ends_charge);
                    })
                    .is_ok(),
                4 => h.handles < 3 && l.add_handle().map(|()| h.handles += 1).is_ok(),
                5 => l
                    .release_handle()
                    .map(|v| {
                        h.handles -= 1;
                        e += u32::from(v.ends_charge);
                    })
                    .is_ok(),
                _ => l.join(SELF).is_ok(),
            };
            if accepted {
                walk(l, h, e, depth - 1, paths);
            } else {
                assert_eq!(l, lifecycle, "a refused event changed the record");
            }
        }
    }
    let mut paths = 0;
    walk(Lifecycle::new(OWN), History { handles: 1, ..History::default() }, 0, 10, &mut paths);
    walk(Lifecycle::new_unheld(OWN), History::default(), 0, 10, &mut paths);
    assert!(paths > 10_000, "only {paths} paths");
}

/// PB12: a joiner that is not the pending one cannot end somebody else's wait.
#[test]
fn pb12_only_the_pending_joiner_can_be_cancelled() {
    let mut lifecycle = Lifecycle::new(OWN);
    assert_eq!(lifecycle.join(A), Ok(JoinVerdict::Pending));
    let same_thread = Joiner { user_data: 99, ..A };
    let same_mark = Joiner { thread: B.thread, ..A };
    let reused = Joiner { thread: ThreadKey { generation: 2, ..A.thread }, ..A };
    for other in [B, same_thread, same_mark, reused] {
        assert_eq!(lifecycle.cancel_join(other), Err(LifecycleError::NotFound));
    }
    let verdict = lifecycle.exit(1).unwrap();
    assert_eq!(verdict.complete, Some(A));
}
