//! Every event of a call's record in every state, literally; and every short history of two
//! callers and two receivers.

use abi_types::ReplyToken;
use core_endpoint::*;

type Plain = Service<u32, char, Vec<Record<u32, char>>, Vec<Endpoint>>;

const LIMITS: Limits = Limits { queued: 2, in_flight: 2 };
const DEADLINE_NS: u64 = 50;

/// A service whose record 0 is in the named state, for a call 1 or a receive by 'x'.
struct Set {
    service: Plain,
    on: EndpointKey,
    call: CallKey,
    recv: Option<RecvKey>,
}

fn none(ended: Ended<u32, char>) {
    panic!("nothing was to end: {ended:?}");
}

fn set(state: &str) -> Set {
    let mut service: Plain = Service::new(vec![Record::UNUSED; 3], vec![Endpoint::UNUSED; 1]);
    let on = service.open(LIMITS).unwrap();
    let mut call = CallKey::of(ReplyToken::new(0, 1));
    let mut recv = None;
    let asked = Call { caller: 1, badge: 7, deadline_ns: DEADLINE_NS };
    match state {
        "free" => {}
        "receiving" => {
            let Ok(RecvVerdict::Waiting(key)) = service.recv(on, 'x', 0, none) else { panic!() };
            recv = Some(key);
        }
        _ => {
            let Ok(CallVerdict::Queued(key)) = service.call(on, asked, 0) else { panic!() };
            call = key;
            if state != "queued" {
                let _ = service.recv(on, 'x', 0, none).unwrap();
            }
            if state == "abandoned" {
                let _ = service.cancel_call(key).unwrap();
            }
        }
    }
    Set { service, on, call, recv }
}

fn token() -> ReplyToken {
    ReplyToken::new(0, 1)
}

fn ends(ended: &[Ended<u32, char>]) -> String {
    let mut text: Vec<_> = ended
        .iter()
        .map(|end| match end {
            Ended::Call { end, status } => format!("call {} {status:?}", end.caller),
            Ended::Recv { receiver, status } => format!("recv {receiver} {status:?}"),
        })
        .collect();
    text.sort();
    text.join(", ")
}

/// What an operation answered, in short; errors begin with `!`.
fn apply(event: &str, set: &mut Set) -> String {
    let Set { service, on, call, recv } = set;
    let mut ended = Vec::new();
    let said = match event {
        "call" => match service.call(*on, Call { caller: 2, badge: 0, deadline_ns: 0 }, 0) {
            Ok(CallVerdict::Deliver { to, .. }) => format!("deliver to {to}"),
            Ok(CallVerdict::Queued(_)) => "queued".into(),
            Err(error) => format!("!{error:?}"),
        },
        "recv" | "late recv" => {
            let now = if event == "recv" { 0 } else { DEADLINE_NS };
            match service.recv(*on, 'y', now, |end| ended.push(end)) {
                Ok(RecvVerdict::Deliver { caller, .. }) => format!("deliver {caller}"),
                Ok(RecvVerdict::Waiting(_)) => "waiting".into(),
                Err(error) => format!("!{error:?}"),
            }
        }
        "reply" => match service.reply(token()) {
            Ok(ReplyVerdict::Complete { caller, .. }) => format!("complete {caller}"),
            Ok(ReplyVerdict::Dropped) => "dropped".into(),
            Err(StaleToken) => "!stale".into(),
        },
        "reply then recv" => match service.reply_then_recv(token(), *on, 'y', 0, none) {
            Ok((ReplyVerdict::Complete { caller, .. }, RecvVerdict::Waiting(_))) => {
                format!("complete {caller}, waiting")
            }
            Ok((ReplyVerdict::Dropped, RecvVerdict::Waiting(_))) => "dropped, waiting".into(),
            Ok(other) => format!("{other:?}"),
            Err(ReplyThenRecvError::StaleToken) => "!stale".into(),
            Err(error) => format!("!{error:?}"),
        },
        "cancel call" => match service.cancel_call(*call) {
            Ok(end) if end.was_delivered => format!("end {} delivered", end.caller),
            Ok(end) => format!("end {}", end.caller),
            Err(NotFound) => "!not found".into(),
        },
        "cancel recv" => match recv.map_or(Err(NotFound), |key| service.cancel_recv(key)) {
            Ok(receiver) => format!("end {receiver}"),
            Err(NotFound) => "!not found".into(),
        },
        "give up" => match service.give_up_delivery(recv.unwrap_or(RecvKey::of(token()))) {
            true => "noted".into(),
            false => "!nothing".into(),
        },
        "expire" | "late expire" => {
            let now = if event == "expire" { DEADLINE_NS - 1 } else { DEADLINE_NS };
            match service.expire_call(*call, now) {
                Ok(end) => format!("end {}", end.caller),
                Err(ExpireError::NotDue) => "!not due".into(),
                Err(ExpireError::NotFound) => "!not found".into(),
            }
        }
        "lend" => match service.lend(*call, Donation(1)) {
            Ok(()) => "lent".into(),
            Err(error) => format!("!{error:?}"),
        },
        "reject call" => match service.reject_call(*call, 0, none) {
            Ok(rejected) => {
                format!("{:?} {} again", rejected.call.map(|(caller, _)| caller), rejected.receiver)
            }
            Err(NotFound) => "!not found".into(),
        },
        "reject recv" => match service.reject_recv(*call, 7, DEADLINE_NS) {
            Ok(RecvRejected { receiver, again: CallAgain::Abandoned, .. }) => {
                format!("{receiver}, nobody")
            }
            Ok(RecvRejected {
                receiver, again: CallAgain::Call(CallVerdict::Queued(_)), ..
            }) => {
                format!("{receiver}, queued")
            }
            Ok(other) => format!("{other:?}"),
            Err(NotFound) => "!not found".into(),
        },
        "receiver exit" => {
            service.receiver_exit(|receiver| *receiver == 'x', |end| ended.push(end));
            String::new()
        }
        "close" => {
            service.close(*on, |end| ended.push(end)).unwrap();
            String::new()
        }
        "owner exit" => {
            service.shut();
            assert_eq!(service.drain(10, |end| ended.push(end)), DrainVerdict::Done);
            String::new()
        }
        other => panic!("{other}"),
    };
    let ended = ends(&ended);
    if ended.is_empty() { said } else { format!("{said}[{ended}]") }
}

#[test]
fn every_event_in_every_state() {
    let states = ["free", "receiving", "queued", "delivered", "abandoned"];
    #[rustfmt::skip]
    let table: &[(&str, [&str; 5])] = &[
        ("call",            ["queued", "deliver to x", "queued", "queued", "queued"]),
        ("recv",            ["waiting", "waiting", "deliver 1", "waiting", "waiting"]),
        ("late recv",       ["waiting", "waiting", "waiting[call 1 DeadlineExpired]", "waiting", "waiting"]),
        ("reply",           ["!stale", "!stale", "!stale", "complete 1", "dropped"]),
        ("reply then recv", ["!stale", "!stale", "!stale", "complete 1, waiting", "dropped, waiting"]),
        ("cancel call",     ["!not found", "!not found", "end 1", "end 1 delivered", "!not found"]),
        ("cancel recv",     ["!not found", "end x", "!not found", "!not found", "!not found"]),
        ("give up",         ["!nothing", "!nothing", "!nothing", "noted", "noted"]),
        ("expire",          ["!not found", "!not found", "!not due", "!not found", "!not found"]),
        ("late expire",     ["!not found", "!not found", "end 1", "!not found", "!not found"]),
        ("lend",            ["!NotFound", "!NotFound", "!NotFound", "lent", "!NotFound"]),
        ("reject call",     ["!not found", "!not found", "!not found", "Some(1) x again", "None x again"]),
        ("reject recv",     ["!not found", "!not found", "!not found", "x, queued", "x, nobody"]),
        ("receiver exit",   ["", "[recv x Disconnected]", "", "[call 1 Disconnected]", ""]),
        ("close",           ["", "[recv x Disconnected]", "[call 1 Disconnected]", "", ""]),
        ("owner exit",      ["", "[recv x Disconnected]", "[call 1 Disconnected]", "[call 1 Disconnected]", ""]),
    ];
    for (event, row) in table {
        for (state, expected) in states.iter().zip(row) {
            let mut set = set(state);
            let before = set.service.clone();
            let said = apply(event, &mut set);
            assert_eq!(said, *expected, "{event} when {state}");
            set.service.check_invariants().unwrap();
            if said.starts_with('!') {
                assert_eq!(set.service, before, "{event} when {state} changed something");
            }
        }
    }
}

/// One history: what is pending, and how often each call and receive has ended.
#[derive(Clone)]
struct History {
    service: Plain,
    on: EndpointKey,
    calls: Vec<CallKey>,
    recvs: Vec<RecvKey>,
    tokens: Vec<ReplyToken>,
    ended_calls: [u8; 3],
    ended_recvs: [u8; 3],
}

fn receiver(number: usize) -> char {
    char::from(b'a' + number as u8)
}

impl History {
    fn end_recv(&mut self, receiver: char) {
        self.ended_recvs[(receiver as u8 - b'a') as usize] += 1;
    }

    fn absorb(&mut self, ended: Vec<Ended<u32, char>>) {
        for end in ended {
            match end {
                Ended::Call { end, .. } => self.ended_calls[end.caller as usize] += 1,
                Ended::Recv { receiver, .. } => self.end_recv(receiver),
            }
        }
    }

    fn received(&mut self, receiver: char, verdict: RecvVerdict<u32>) {
        match verdict {
            RecvVerdict::Deliver { token, .. } => {
                self.tokens.push(token);
                self.end_recv(receiver);
            }
            RecvVerdict::Waiting(key) => self.recvs.push(key),
        }
    }

    /// Applies an event, if it applies; whether it did anything.
    fn apply(&mut self, event: usize, accepted: &mut [usize; 2]) -> bool {
        let mut ended = Vec::new();
        match event {
            0 | 1 if accepted[0] < 3 => {
                let caller = accepted[0] as u32;
                let deadline_ns = if event == 1 { DEADLINE_NS } else { 0 };
                match self.service.call(self.on, Call { caller, badge: 0, deadline_ns }, 0) {
                    Ok(CallVerdict::Deliver { to, token }) => {
                        self.end_recv(to);
                        self.tokens.push(token);
                        self.calls.push(CallKey::of(token));
                    }
                    Ok(CallVerdict::Queued(key)) => self.calls.push(key),
                    Err(_) => return false,
                }
                accepted[0] += 1;
                true
            }
            2 | 3 if accepted[1] < 3 => {
                let who = receiver(accepted[1]);
                let now = if event == 2 { 0 } else { DEADLINE_NS };
                let Ok(verdict) = self.service.recv(self.on, who, now, |e| ended.push(e)) else {
                    return false;
                };
                accepted[1] += 1;
                self.absorb(ended);
                self.received(who, verdict);
                true
            }
            4 | 5 => {
                let token = if event == 4 { self.tokens.first() } else { self.tokens.last() };
                match token.map(|token| self.service.reply(*token)) {
                    Some(Ok(ReplyVerdict::Complete { caller, .. })) => {
                        self.ended_calls[caller as usize] += 1;
                        true
                    }
                    Some(Ok(ReplyVerdict::Dropped)) => true,
                    _ => false,
                }
            }
            6 if accepted[1] < 3 => {
                let Some(token) = self.tokens.last().copied() else { return false };
                let who = receiver(accepted[1]);
                match self.service.reply_then_recv(token, self.on, who, 0, |e| ended.push(e)) {
                    Ok((reply, recv)) => {
                        if let ReplyVerdict::Complete { caller, .. } = reply {
                            self.ended_calls[caller as usize] += 1;
                        }
                        accepted[1] += 1;
                        self.absorb(ended);
                        self.received(who, recv);
                        true
                    }
                    Err(_) => false,
                }
            }
            7..=9 => {
                let Some(key) = self.calls.get(event - 7).copied() else { return false };
                match self.service.cancel_call(key) {
                    Ok(end) => {
                        self.ended_calls[end.caller as usize] += 1;
                        true
                    }
                    Err(NotFound) => false,
                }
            }
            10 => match self.recvs.last().map(|key| self.service.cancel_recv(*key)) {
                Some(Ok(receiver)) => {
                    self.end_recv(receiver);
                    true
                }
                _ => false,
            },
            11 => match self.calls.last().map(|key| self.service.expire_call(*key, DEADLINE_NS)) {
                Some(Ok(end)) => {
                    self.ended_calls[end.caller as usize] += 1;
                    true
                }
                _ => false,
            },
            12 => {
                self.service.receiver_exit(|receiver| *receiver == 'a', |e| ended.push(e));
                self.absorb(ended);
                true
            }
            13 => {
                let closed = self.service.close(self.on, |e| ended.push(e)).is_ok();
                self.absorb(ended);
                closed
            }
            _ => false,
        }
    }

    fn check_whole(mut self, accepted: [usize; 2]) {
        let mut ended = Vec::new();
        self.service.shut();
        assert_eq!(self.service.drain(10, |e| ended.push(e)), DrainVerdict::Done);
        self.absorb(ended);
        for (kind, ended, accepted) in
            [("call", self.ended_calls, accepted[0]), ("recv", self.ended_recvs, accepted[1])]
        {
            for (number, times) in ended.iter().enumerate() {
                assert_eq!(*times, u8::from(number < accepted), "{kind} {number}");
            }
        }
    }
}

/// I1: in every history of up to six events, each call and each receive ends exactly once.
#[test]
fn every_short_history_ends_each_call_once() {
    fn walk(history: &History, accepted: [usize; 2], depth: u32, count: &mut u64) {
        history.service.check_invariants().unwrap();
        *count += 1;
        history.clone().check_whole(accepted);
        if depth == 0 {
            return;
        }
        for event in 0..14 {
            let (mut next, mut next_accepted) = (history.clone(), accepted);
            if next.apply(event, &mut next_accepted) {
                walk(&next, next_accepted, depth - 1, count);
            } else {
                assert_eq!(next.service, history.service, "event {event} changed something");
            }
        }
    }
    let mut service: Plain = Service::new(vec![Record::UNUSED; 4], vec![Endpoint::UNUSED; 1]);
    let on = service.open(LIMITS).unwrap();
    let start = History {
        service,
        on,
        calls: Vec::new(),
        recvs: Vec::new(),
        tokens: Vec::new(),
        ended_calls: [0; 3],
        ended_recvs: [0; 3],
    };
    let mut count = 0;
    walk(&start, [0, 0], 6, &mut count);
    assert!(count > 10_000, "only {count} histories");
    println!("{count} histories");
}
