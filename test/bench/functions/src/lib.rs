//! Where the instructions of one operation go, by function.
//!
//! The benchmark is booted once more with the emulator's log of executed blocks. Between two entries
//! of the measuring loop lies one operation; every block in it is looked up in the symbols of the
//! kernel or of the program whose bytes it has.
//!
//! * [`log`]: the emulator's log as blocks. [`program`]: files, their bytes and symbols.
//! * [`rounds`]: operations and what each consists of. [`inlined`]: functions inside functions.
//! * [`table`]: for people. [`words`]: what they say.
//!
//! Pure: the log comes from any reader.

pub mod inlined;
pub mod log;
pub mod program;
pub mod rounds;
pub mod table;
pub mod words;

/// What is looked for: a measurement, and the function whose loop runs it.
pub const MEASUREMENTS: [(&str, &str); 12] = [
    ("null_entry", "client::ring::null_entry"),
    ("ring_nop_1", "client::ring::nop<1>"),
    ("ring_nop_8", "client::ring::nop<8>"),
    ("ring_nop_64", "client::ring::nop<64>"),
    ("ipc_rt_0", "client::ipc::round_trip<0>"),
    ("ipc_rt_64", "client::ipc::round_trip<8>"),
    ("unpark_none", "client::park::unpark_none"),
    ("park_mismatch", "client::park::mismatch"),
    ("park_rt", "client::park::passes<18446744073709551615>"),
    ("yield_thread", "client::threads::yield_thread"),
    ("yield_process", "client::threads::yield_process"),
    ("map_touch_unmap", "client::memory::map_touch_unmap"),
];
