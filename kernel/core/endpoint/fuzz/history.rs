//! Bytes as a history of one service: no bytes make it panic, break an invariant, change on a
//! refusal, or end a call more or less than once.

#![no_main]

use abi_types::ReplyToken;
use core_endpoint::*;
use libfuzzer_sys::fuzz_target;

type Plain = Service<u8, u8, Vec<Record<u8, u8>>, Vec<Endpoint>>;

struct History {
    service: Plain,
    endpoints: Vec<EndpointKey>,
    calls: Vec<CallKey>,
    recvs: Vec<RecvKey>,
    tokens: Vec<ReplyToken>,
    /// Accepted and not ended, by caller and by receiver.
    open_calls: [i32; 256],
    open_recvs: [i32; 256],
}

fn pick<T: Copy>(from: &[T], choice: u8) -> Option<T> {
    from.get(usize::from(choice) % from.len().max(1)).copied()
}

impl History {
    fn end_call(&mut self, caller: u8) {
        self.open_calls[usize::from(caller)] -= 1;
        assert!(self.open_calls[usize::from(caller)] >= 0, "a call ended twice");
    }

    fn end_recv(&mut self, receiver: u8) {
        self.open_recvs[usize::from(receiver)] -= 1;
        assert!(self.open_recvs[usize::from(receiver)] >= 0, "a receive ended twice");
    }

    fn absorb(&mut self, ended: Vec<Ended<u8, u8>>) {
        for end in ended {
            match end {
                Ended::Call { end, .. } => self.end_call(end.caller),
                Ended::Recv { receiver, .. } => self.end_recv(receiver),
            }
        }
    }

    fn received(&mut self, receiver: u8, verdict: RecvVerdict<u8>) {
        match verdict {
            RecvVerdict::Deliver { token, .. } => {
                self.tokens.push(token);
                self.end_recv(receiver);
            }
            RecvVerdict::Waiting(key) => self.recvs.push(key),
        }
    }

    fn replied(&mut self, verdict: ReplyVerdict<u8>) {
        if let ReplyVerdict::Complete { caller, .. } = verdict {
            self.end_call(caller);
        }
    }

    /// Applies one event; whether the service accepted it.
    fn apply(&mut self, event: u8, who: u8, choice: u8) -> bool {
        let mut ended = Vec::new();
        let now_ns = u64::from(choice);
        let on = pick(&self.endpoints, who).unwrap_or(EndpointKey::NONE);
        let accepted = match event % 12 {
            0 => {
                let limits = Limits { queued: u32::from(who), in_flight: u32::from(choice) };
                let opened = self.service.open(limits);
                self.endpoints.extend(opened.ok());
                opened.is_ok()
            }
            1 => {
                let deadline_ns = u64::from(who);
                let verdict =
                    self.service.call(on, Call { caller: choice, badge: 0, deadline_ns }, now_ns);
                self.open_calls[usize::from(choice)] += i32::from(verdict.is_ok());
                match verdict {
                    Ok(CallVerdict::Deliver { to, token }) => {
                        self.end_recv(to);
                        self.tokens.push(token);
                        self.calls.push(CallKey::of(token));
                    }
                    Ok(CallVerdict::Queued(key)) => self.calls.push(key),
                    Err(_) => {}
                }
                verdict.is_ok()
            }
            2 => {
                let verdict = self.service.recv(on, choice, now_ns, |end| ended.push(end));
                self.open_recvs[usize::from(choice)] += i32::from(verdict.is_ok());
                if let Ok(verdict) = verdict {
                    self.received(choice, verdict);
                }
                verdict.is_ok()
            }
            3 => match pick(&self.tokens, choice).map(|token| self.service.reply(token)) {
                Some(Ok(verdict)) => {
                    self.replied(verdict);
                    true
                }
                _ => false,
            },
            4 => {
                let token = pick(&self.tokens, choice).unwrap_or(ReplyToken::NONE);
                let answer =
                    self.service.reply_then_recv(token, on, who, now_ns, |end| ended.push(end));
                if let Ok((reply, recv)) = answer {
                    self.open_recvs[usize::from(who)] += 1;
                    self.replied(reply);
                    self.received(who, recv);
                }
                answer.is_ok()
            }
            5 | 6 => {
                let Some(key) = pick(&self.calls, choice) else { return false };
                let end = match event % 12 {
                    5 => self.service.cancel_call(key).ok(),
                    _ => self.service.expire_call(key, u64::from(who)).ok(),
                };
                end.inspect(|end| self.end_call(end.caller)).is_some()
            }
            7 => {
                let Some(key) = pick(&self.recvs, choice) else { return false };
                match self.service.cancel_recv(key) {
                    Ok(receiver) => {
                        self.end_recv(receiver);
                        true
                    }
                    Err(_) => self.service.give_up_delivery(key),
                }
            }
            8 => {
                let closed = self.service.close(on, |end| ended.push(end));
                closed.is_ok()
            }
            9 => {
                self.service.receiver_exit(|receiver| *receiver == who, |end| ended.push(end));
                true
            }
            10 => {
                let Some(token) = pick(&self.tokens, choice) else { return false };
                let key = CallKey::of(token);
                let Ok(rejected) = self.service.reject_call(key, now_ns, |end| ended.push(end))
                else {
                    return false;
                };
                if let Some((caller, _)) = rejected.call {
                    self.end_call(caller);
                }
                if let RecvAgain::Recv(verdict) = rejected.again {
                    self.open_recvs[usize::from(rejected.receiver)] += 1;
                    self.received(rejected.receiver, verdict);
                }
                true
            }
            _ => {
                let Some(token) = pick(&self.tokens, choice) else { return false };
                let Ok(rejected) = self.service.reject_recv(CallKey::of(token), 0, now_ns) else {
                    return false;
                };
                match rejected.again {
                    CallAgain::Disconnected(caller) | CallAgain::Overloaded(caller) => {
                        self.end_call(caller);
                    }
                    CallAgain::Call(CallVerdict::Deliver { to, .. }) => self.end_recv(to),
                    CallAgain::Call(CallVerdict::Queued(_)) | CallAgain::Abandoned => {}
                }
                true
            }
        };
        self.absorb(ended);
        accepted
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut history = History {
        service: Service::new(vec![Record::UNUSED; 6], vec![Endpoint::UNUSED; 2]),
        endpoints: Vec::new(),
        calls: Vec::new(),
        recvs: Vec::new(),
        tokens: Vec::new(),
        open_calls: [0; 256],
        open_recvs: [0; 256],
    };
    for event in bytes.chunks_exact(3).take(200) {
        let before = history.service.clone();
        if !history.apply(event[0], event[1], event[2]) {
            assert_eq!(history.service, before, "a refusal changed something");
        }
        history.service.check_invariants().unwrap();
    }
    let mut ended = Vec::new();
    history.service.shut();
    while history.service.drain(4, |end| ended.push(end)) == DrainVerdict::More {}
    history.absorb(ended);
    history.service.check_invariants().unwrap();
    assert!(history.open_calls.iter().all(|open| *open == 0), "a call never ended");
    assert!(history.open_recvs.iter().all(|open| *open == 0), "a receive never ended");
});
