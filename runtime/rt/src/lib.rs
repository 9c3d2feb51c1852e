//! The runtime of user programs: from the first instruction to typed calls. None of it allocates; an
//! allocator for programs that want one is `capos_heap`.
//!
//! A program names its main function with [`main!`] and gets an [`Env`]: its capabilities by name
//! and its thread's [`Io`].
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//!
//! use capos_rt::{Env, Error, println};
//!
//! capos_rt::main!(main);
//!
//! fn main(env: &Env) -> Result<(), Error> {
//!     let timer = env.cap("timer", schema::timer::INTERFACE_ID)?;
//!     schema::timer::Client::new(env.io.caller(), timer).sleep(1_000_000)?;
//!     println!(env, "a millisecond later");
//!     Ok(())
//! }
//! ```
//!
//! * [`ring`]: the thread's ring as it is: SQEs in, CQEs out, nothing kept.
//! * [`io`]: operations under way, each with a name; completions are kept until asked for.
//! * [`caller`]: typed clients' way to call and wait. [`serve`]: a service's loop.
//! * [`capset`]: capabilities by name. [`time`]: the clock without a call.
//! * [`out`]: text to the console. [`memory`]: pages beyond what the program declares.
//! * [`thread`]: more threads, on stacks the program declares with [`stacks!`]. [`park`]: waiting on a word.
//! * `start`, `syscall`, `panic`: the two entries into the program, the two into the kernel, and
//!   the end nobody wanted; only in programs, not on the host.
//!
//! Everything of a thread stays with it: an [`Io`] is neither sent nor shared. Only this crate
//! contains `unsafe`; programs have none.
#![no_std]
#![cfg_attr(target_os = "none", feature(allow_internal_unsafe))]
#![cfg_attr(
    target_os = "none",
    allow(
        internal_features,
        reason = "main! and stacks! let programs without unsafe define a symbol and a note"
    )
)]

#[cfg(test)]
extern crate std;

pub mod buffer;
pub mod caller;
pub mod capset;
mod error;
pub mod io;
pub mod memory;
pub mod out;
pub mod park;
pub mod process;
pub mod ring;
pub mod serve;
#[cfg(test)]
mod testing;
#[cfg(any(target_os = "none", test))]
mod tls;

#[cfg(target_os = "none")]
mod env;
#[cfg(target_os = "none")]
pub mod panic;
#[cfg(target_os = "none")]
mod stack;
#[cfg(target_os = "none")]
#[doc(hidden)]
pub mod start;
#[cfg(target_os = "none")]
pub mod syscall;
#[cfg(target_os = "none")]
pub mod thread;
#[cfg(target_os = "none")]
pub mod time;

pub use caller::Caller;
pub use capset::{CapSet, NoCap};
pub use error::Error;
pub use io::{Io, Pending};
pub use ring::{Enter, Ring};
pub use serve::serve;

#[cfg(target_os = "none")]
pub use env::{Ending, Env};
#[cfg(target_os = "none")]
pub use panic::PANIC_EXIT;
#[cfg(target_os = "none")]
pub use syscall::exit;
#[cfg(target_os = "none")]
pub use time::now_ns;
