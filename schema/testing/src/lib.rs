//! A server for every interface and a transport that serves its own calls.

mod answering;
mod everything;
mod loopback;
mod made;
mod messages;

pub use everything::{Everything, serve};
pub use loopback::{Loopback, Words};
pub use made::{Made, Source, make};
pub use messages::{Call, calls};
