//! What an operation costs, in records touched.

use std::cell::Cell;
use std::rc::Rc;

use core_endpoint::*;

fn call(caller: u32) -> Call<u32> {
    Call { caller, badge: 0, deadline_ns: 0 }
}

/// Counts how often a record is touched.
struct Counting {
    records: Vec<Record<u32, char>>,
    touched: Rc<Cell<u32>>,
}

impl Store<Record<u32, char>> for Counting {
    fn count(&self) -> u32 {
        self.records.len() as u32
    }
    fn at(&self, index: u32) -> Option<&Record<u32, char>> {
        self.touched.set(self.touched.get() + 1);
        self.records.get(index as usize)
    }
    fn at_mut(&mut self, index: u32) -> Option<&mut Record<u32, char>> {
        self.touched.set(self.touched.get() + 1);
        self.records.get_mut(index as usize)
    }
}

/// PB2: with 1,000 waiting, each operation touches as many records as with 4.
#[test]
fn pb2_the_cost_of_an_operation_does_not_grow_with_the_queue() {
    fn costs(waiters: u32) -> Vec<u32> {
        let touched = Rc::new(Cell::new(0));
        let records = vec![Record::UNUSED; 4000];
        let store = Counting { records, touched: touched.clone() };
        let limits = Limits { queued: 2000, in_flight: 2000 };
        let mut costs = Vec::new();
        let mut service = Service::new(store, vec![Endpoint::UNUSED; 2]);
        let (on, receivers) = (service.open(limits).unwrap(), service.open(limits).unwrap());
        let mut calls = Vec::new();
        let mut recvs = Vec::new();
        for n in 0..waiters {
            let Ok(CallVerdict::Queued(key)) = service.call(on, call(n), 0) else { panic!() };
            calls.push(key);
            let Ok(RecvVerdict::Waiting(key)) = service.recv(receivers, 'x', 0, |_| {}) else {
                panic!()
            };
            recvs.push(key);
        }
        let middle = waiters as usize / 2;
        costs.push(touched.get());
        let _ = service.call(on, call(1), 0).unwrap();
        costs.push(touched.get());
        let _ = service.recv(receivers, 'y', 0, |_| {}).unwrap();
        costs.push(touched.get());
        let _ = service.cancel_call(calls[middle]).unwrap();
        costs.push(touched.get());
        let _ = service.cancel_recv(recvs[middle]).unwrap();
        costs.push(touched.get());
        let Ok(RecvVerdict::Deliver { token, .. }) = service.recv(on, 'x', 0, |_| {}) else {
            panic!()
        };
        costs.push(touched.get());
        let _ = service.reply_then_recv(token, on, 'x', 0, |_| {}).unwrap();
        costs.push(touched.get());
        let Ok(CallVerdict::Deliver { token, .. }) = service.call(receivers, call(1), 0) else {
            panic!()
        };
        costs.push(touched.get());
        let _ = service.reply(token).unwrap();
        costs.push(touched.get());
        costs.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
    let (few, many) = (costs(4), costs(1000));
    assert_eq!(few, many);
    assert!(many.iter().all(|cost| *cost <= 16), "{many:?}");
}
