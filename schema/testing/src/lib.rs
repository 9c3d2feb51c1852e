//! A server for every interface and a transport that serves its own calls.

mod everything;
mod loopback;

pub use everything::{Everything, serve};
pub use loopback::{Loopback, Words};
