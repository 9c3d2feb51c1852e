//! Who takes part in more than one of the models, and the count of what they did.
use abi_sync::thread;
use fiber_chan::{Select, SendError, Sender};

/// Keeps what was accepted; what was not has come back.
pub fn accept(sent: &mut Vec<u32>, value: u32, result: Result<(), SendError<u32>>) {
    match result {
        Ok(()) => sent.push(value),
        Err(error) => assert_eq!(error.into_inner(), value, "another value came back"),
    }
}

/// Sends three values to whichever of the two takes them.
pub fn select_send(first: u32, a: &Sender<u32>, b: &Sender<u32>) -> Vec<u32> {
    let mut sent = Vec::new();
    for value in first..first + 3 {
        let mut set = Select::new();
        set.send(a);
        set.send(b);
        let chosen = set.select().unwrap();
        let result = match chosen.index() {
            0 => chosen.send(a, value),
            _ => chosen.send(b, value),
        };
        accept(&mut sent, value, result);
    }
    sent
}

/// All that these threads have sent or received, in order.
pub fn sorted(threads: impl IntoIterator<Item = thread::JoinHandle<Vec<u32>>>) -> Vec<u32> {
    let lists = threads.into_iter().map(|thread| thread.join().unwrap());
    let mut all: Vec<u32> = lists.flatten().collect();
    all.sort_unstable();
    all
}
