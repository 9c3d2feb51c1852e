//! Memory: frames, the kernel's page tables, heap, stacks, device mappings.
//!
//! Every allocation can fail and says so. What is handed out is owned by a value; dropping the
//! value gives the memory back, so safe code can neither free twice nor use what it gave back.
//!
//! The order of its locks is that of their classes in `smp_lock`: they come after all others, frames last.
//!
//! * [`frames`]: physical frames, from the memory map.
//! * [`tables`]: the kernel's own page tables, W^X.
//! * [`heap`]: `alloc`'s allocator, fallible only.
//! * [`stack`]: kernel stacks with guard pages. [`cpu`]: per-CPU blocks with their stacks.
//! * [`space`]: user address spaces and access to user memory. [`thread`]: contexts of user threads.
//! * [`shared`]: frames behind memory objects.
//! * [`device`]: device registers, mapped where they are used.
//! * [`fallible`]: vectors and boxes from parts, without panicking.
//! * [`reclaim`]: the loader's memory, once nothing of it is in use.
//! * [`probe`]: user pages on purpose, for tests of the protections.
#![no_std]
#![feature(allocator_api)]

extern crate alloc;

pub mod cpu;
pub mod device;
pub mod fallible;
pub mod frames;
pub mod heap;
mod image;
pub mod probe;
pub mod reclaim;
pub mod room;
pub mod shared;
pub mod space;
pub mod stack;
pub mod tables;
pub mod thread;
mod time_page;

pub use core_fallible::OutOfMemory;
