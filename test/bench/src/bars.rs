//! What is measured, and what it may cost.

/// A measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its name: the test's id without `bench.`.
    pub name: &'static str,
    /// What is counted.
    pub what: &'static str,
    /// Most instructions an operation may take, if there is such a bar.
    pub most: Option<u64>,
}

const fn bar(name: &'static str, most: Option<u64>, what: &'static str) -> Bar {
    Bar { name, what, most }
}

/// Every measurement, in the order of the table.
pub const BARS: [Bar; 20] = [
    bar("null_entry", Some(150), "cap_enter(0, 0) with an empty ring"),
    bar("ring_nop_1", Some(350), "NOP, one an entry"),
    bar("ring_nop_8", Some(120), "NOP, eight an entry, each"),
    bar("ring_nop_64", Some(80), "NOP, 64 an entry, each"),
    bar("ipc_rt_0", None, "call and answer, no payload, two processes"),
    bar("ipc_rt_64", Some(1539), "call and answer, 64 bytes each way, two processes"),
    bar("ipc_rt_64_typed", None, "the same with generated client and server"),
    bar("ipc_rt_4096_address", None, "call and answer, 4096 bytes each way, by address"),
    bar("ipc_rt_4096_registered", None, "the same through registered buffers"),
    bar("unpark_none", Some(350), "UNPARK without a waiter"),
    bar("park_mismatch", None, "PARK on a word with another value"),
    bar("park_rt", None, "wake another thread, park, be woken by it"),
    bar("park_rt_limit", None, "the same, parked for some time at most"),
    bar("sleep_cancel", None, "Timer.sleep and its CANCEL"),
    bar("ipc_rt_deadline", None, "call with a deadline and answer, two processes"),
    bar("enter_timeout", None, "call and answer, waited for with a time-out"),
    bar("yield_thread", Some(700), "YIELD to a thread of the process, each switch"),
    bar("yield_process", Some(700), "YIELD to another process, each switch"),
    bar("map_touch_unmap", None, "VirtualMemory.map of a page, a write to it, unmap"),
    bar("thread_create_join", None, "a thread's whole life, as its maker sees it"),
];
