//! A CPU that is kept across a point where the thread may move.
#![no_std]

use kernel_dispatch::{Here, Machine, give_way};

/// Does not compile: the thread that gives way may go on on another CPU.
pub fn keeps_its_cpu<M: Machine>(m: M, thread: &'static M::Thread) {
    let here = Here::now(m);
    let queue = &here.queue;
    give_way(m, here, thread);
    drop(queue.lock());
}
