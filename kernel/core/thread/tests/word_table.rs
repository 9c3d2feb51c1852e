//! Every event of the state word in every state, with every mark: the whole table, literally.
//!
//! A row lists what an event does in each state. `.` is a refusal. Everything the words of a
//! cell do not say (generation, ticket, other marks) must come out unchanged.

use core_thread::*;

const GENERATION: u32 = 7;
const TICKET: u32 = 41;

/// The columns: state and marks, every combination that can exist and many that cannot.
const COLUMNS: [&str; 16] = [
    "Free",
    "New",
    "NewK",
    "Runnable",
    "RunnableK",
    "Running",
    "RunningK",
    "AboutToWait",
    "AboutToWaitK",
    "AboutToWaitP",
    "AboutToWaitKP",
    "Waiting",
    "RunnableI",
    "RunnableKI",
    "RunningI",
    "RunningKI",
];
/// Columns after which there is no thread.
const ENDED: [&str; 3] = ["Dead", "DeadK", "Retired"];

fn word(name: &str) -> Word {
    let (state, rest) = [
        ("Free", State::Free),
        ("New", State::New),
        ("Runnable", State::Runnable),
        ("Running", State::Running),
        ("AboutToWait", State::AboutToWait),
        ("Waiting", State::Waiting),
        ("Dead", State::Dead),
        ("Retired", State::Retired),
    ]
    .into_iter()
    .find_map(|(text, state)| name.strip_prefix(text).map(|rest| (state, rest)))
    .unwrap();
    let word = |state| {
        let (killed, pending) = (rest.contains('K'), rest.contains('P'));
        Word::compose(state, GENERATION, Ticket::new(TICKET), killed, pending)
    };
    if !rest.contains('I') {
        return word(state);
    }
    // The mark by its own event, which is in the table too.
    let inside = word(State::Running).pause().unwrap();
    let change = word(State::Running).to_bits() ^ word(state).to_bits();
    Word::from_bits(inside.to_bits() ^ change)
}

/// The result as a cell: the next word and the verdict.
fn cell(result: Result<(Word, String), String>) -> String {
    match result {
        Ok((next, verdict)) => {
            next.check_invariants().unwrap();
            let mut text = format!("{:?}", next.state());
            if next.is_killed() {
                text.push('K');
            }
            if next.is_pending() {
                text.push('P');
            }
            if next.is_inside() {
                text.push('I');
            }
            if !verdict.is_empty() {
                text.push(' ');
                text.push_str(&verdict);
            }
            text
        }
        Err(_) => ".".into(),
    }
}

fn said<V: core::fmt::Debug, E: core::fmt::Debug>(
    result: Result<(Word, V), E>,
) -> Result<(Word, String), String> {
    result.map(|(next, v)| (next, format!("{v:?}"))).map_err(|e| format!("{e:?}"))
}

fn silent<E: core::fmt::Debug>(result: Result<Word, E>) -> Result<(Word, String), String> {
    result.map(|next| (next, String::new())).map_err(|e| format!("{e:?}"))
}

type Event = (&'static str, fn(Word) -> Result<(Word, String), String>, &'static [&'static str]);

/// For each event: the cell for each of COLUMNS, then for each of ENDED.
#[rustfmt::skip]
const TABLE: &[Event] = &[
    ("create", |w| said(w.create()), &[
        "New 8", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("start", |w| silent(w.start()), &[
        ".", "Runnable", "RunnableK", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("abandon", |w| silent(w.abandon()), &[
        ".", "Dead", "DeadK", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("dispatch", |w| said(w.dispatch(GENERATION)), &[
        ".", ".", ".", "Running Run", "DeadK Finalise", ".", ".", ".", ".", ".", ".", ".",
        "RunningI Run", "RunningKI Run", ".", ".",
        ".", ".", "."]),
    ("dispatch of an earlier thread", |w| said(w.dispatch(GENERATION - 1)), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("requeue", |w| said(w.requeue()), &[
        ".", ".", ".", ".", ".", "Runnable Enqueue", "DeadK Finalise", ".", ".", ".", ".", ".",
        ".", ".", "RunnableI Enqueue", "RunnableKI Enqueue",
        ".", ".", "."]),
    ("pause", |w| silent(w.pause()), &[
        ".", ".", ".", ".", ".", "RunningI", "RunningKI", ".", ".", ".", ".", ".",
        ".", ".", "RunningI", "RunningKI",
        ".", ".", "."]),
    ("resume", |w| silent(w.resume()), &[
        ".", ".", ".", ".", ".", "Running", "RunningK", ".", ".", ".", ".", ".",
        ".", ".", "Running", "RunningK",
        ".", ".", "."]),
    ("begin_wait", |w| said(w.begin_wait()), &[
        ".", ".", ".", ".", ".", "AboutToWait AboutToWait(Ticket(42))", "RunningK Die", ".", ".", ".", ".", ".",
        ".", ".", "AboutToWait AboutToWait(Ticket(42))", "RunningKI Die",
        ".", ".", "."]),
    ("cancel_wait", |w| said(w.cancel_wait()), &[
        ".", ".", ".", ".", ".", ".", ".",
        "Running Resume", "RunningK Die", "Running Resume", "RunningK Die", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("commit_wait", |w| said(w.commit_wait()), &[
        ".", ".", ".", ".", ".", ".", ".",
        "Waiting Waits", "DeadK Finalise", "Runnable Enqueue", "DeadK Finalise", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("wake", |w| said(w.wake(GENERATION, Ticket::new(TICKET))), &[
        ".", ".", ".", ".", ".", ".", ".",
        "AboutToWaitP Noted", "AboutToWaitKP Noted", "AboutToWaitP Noted", "AboutToWaitKP Noted", "Runnable Enqueue",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("wake of an earlier wait", |w| said(w.wake(GENERATION, Ticket::new(TICKET - 1))), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("wake of an earlier thread", |w| said(w.wake(GENERATION - 1, Ticket::new(TICKET))), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("claim", |w| silent(w.claim(GENERATION)), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", "Running",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("claim of an earlier thread", |w| silent(w.claim(GENERATION - 1)), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("kill", |w| said(w.kill(GENERATION)), &[
        ".", "NewK Noted", "NewK Already", "RunnableK Noted", "RunnableK Already",
        "RunningK Interrupt", "RunningK Already",
        "AboutToWaitK Noted", "AboutToWaitK Already", "AboutToWaitKP Noted", "AboutToWaitKP Already",
        "RunnableK Enqueue",
        "RunnableKI Noted", "RunnableKI Already", "RunningKI Interrupt", "RunningKI Already",
        ".", ".", "."]),
    ("kill of an earlier thread", |w| said(w.kill(GENERATION - 1)), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        ".", ".", "."]),
    ("finish", |w| silent(w.finish()), &[
        ".", ".", ".", ".", ".", "Dead", "DeadK", ".", ".", ".", ".", ".",
        ".", ".", "Dead", "DeadK",
        ".", ".", "."]),
    ("recycle", |w| said(w.recycle()), &[
        ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".", ".",
        ".", ".", ".", ".",
        "Free Free", "Free Free", "."]),
];

#[test]
fn every_event_in_every_state() {
    let mut cells = 0;
    for (event, apply, expected) in TABLE {
        assert_eq!(expected.len(), COLUMNS.len() + ENDED.len(), "row {event}");
        for (column, expected) in COLUMNS.iter().chain(&ENDED).zip(*expected) {
            let before = word(column);
            before.check_invariants().unwrap();
            let result = apply(before);
            if let Ok((next, _)) = &result {
                let generation = if *event == "create" { GENERATION + 1 } else { GENERATION };
                let ticket = if next.state() == State::AboutToWait && *event == "begin_wait" {
                    TICKET + 1
                } else {
                    TICKET
                };
                assert_eq!(next.generation(), generation, "{event} in {column}");
                assert_eq!(next.ticket(), Ticket::new(ticket), "{event} in {column}");
            }
            assert_eq!(cell(result), *expected, "{event} in {column}");
            cells += 1;
        }
    }
    assert_eq!(cells, 20 * 19);
}

/// The shared word takes the same transitions, and a refusal leaves it as it was.
#[test]
fn the_shared_word_agrees_with_the_table() {
    type Shared = (&'static str, fn(&StateWord) -> Result<String, String>);
    fn text<V: core::fmt::Debug, E: core::fmt::Debug>(r: Result<V, E>) -> Result<String, String> {
        r.map(|v| format!("{v:?}")).map_err(|e| format!("{e:?}"))
    }
    let shared: &[Shared] = &[
        ("create", |w| text(w.create())),
        ("start", |w| text(w.start()).map(|_| String::new())),
        ("abandon", |w| text(w.abandon()).map(|_| String::new())),
        ("dispatch", |w| text(w.dispatch(GENERATION))),
        ("requeue", |w| text(w.requeue())),
        ("pause", |w| text(w.pause()).map(|_| String::new())),
        ("resume", |w| text(w.resume()).map(|_| String::new())),
        ("begin_wait", |w| text(w.begin_wait())),
        ("cancel_wait", |w| text(w.cancel_wait())),
        ("commit_wait", |w| text(w.commit_wait())),
        ("wake", |w| text(w.wake(GENERATION, Ticket::new(TICKET)))),
        ("claim", |w| text(w.claim_if(GENERATION, || true)).map(|_| String::new())),
        ("kill", |w| text(w.kill(GENERATION))),
        ("finish", |w| text(w.finish()).map(|_| String::new())),
        ("recycle", |w| text(w.recycle())),
    ];
    for (event, apply) in shared {
        let (_, pure, _) = TABLE.iter().find(|row| row.0 == *event).unwrap();
        for column in COLUMNS.iter().chain(&ENDED) {
            let shared = StateWord::starting_at(word(column));
            let verdict = apply(&shared);
            match pure(word(column)) {
                Ok((next, said)) => {
                    assert_eq!(shared.load(), next, "{event} in {column}");
                    assert_eq!(verdict, Ok(said), "{event} in {column}");
                }
                Err(_) => {
                    assert_eq!(shared.load(), word(column), "{event} in {column}");
                    assert!(verdict.is_err(), "{event} in {column}");
                }
            }
        }
    }
}

#[test]
fn a_record_retires_after_its_last_generation() {
    let last = |state| Word::compose(state, u32::MAX, Ticket::new(3), true, false);
    let (next, verdict) = last(State::Dead).recycle().unwrap();
    assert_eq!(verdict, RecycleVerdict::Retired);
    assert_eq!((next.state(), next.is_killed()), (State::Retired, false));
    assert!(next.create().is_err());
    assert!(next.kill(u32::MAX).is_err());
}

#[test]
fn zeroed_memory_is_a_free_record_and_generation_zero_is_never_given_out() {
    let fresh = StateWord::new();
    assert_eq!(fresh.load(), Word::from_bits(0));
    assert_eq!(fresh.create(), Ok(1));
}

#[test]
fn tickets_wrap_without_touching_their_neighbours() {
    let full = Word::compose(State::Running, 5, Ticket::new(u32::MAX), false, false);
    let (next, verdict) = full.begin_wait().unwrap();
    assert_eq!(verdict, WaitVerdict::AboutToWait(Ticket::new(0)));
    assert_eq!((next.generation(), next.state()), (5, State::AboutToWait));
    next.check_invariants().unwrap();
}

/// PB13: what was said to a thread before its record was reused does not reach the next one.
#[test]
fn pb13_a_reused_record_hears_nothing_meant_for_its_predecessor() {
    let shared = StateWord::new();
    let first = shared.create().unwrap();
    shared.start().unwrap();
    assert_eq!(shared.dispatch(first), Ok(DispatchVerdict::Run));
    let Ok(WaitVerdict::AboutToWait(ticket)) = shared.begin_wait() else { panic!() };
    assert_eq!(shared.kill(first), Ok(KillVerdict::Noted));
    assert_eq!(shared.commit_wait(), Ok(CommitVerdict::Finalise));
    assert_eq!(shared.recycle(), Ok(RecycleVerdict::Free));
    let second = shared.create().unwrap();
    assert_ne!(first, second);
    shared.start().unwrap();
    assert_eq!(shared.dispatch(first), Err(Stale));
    assert_eq!(shared.wake(first, ticket), Err(Stale));
    assert_eq!(Want::new().claim_one(&shared, first), Err(Stale));
    assert_eq!(shared.kill(first), Err(Stale));
    assert_eq!(shared.dispatch(second), Ok(DispatchVerdict::Run));
    assert!(!shared.is_killed());
}
