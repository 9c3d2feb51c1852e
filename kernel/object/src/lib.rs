//! The interfaces the kernel serves itself: one file each, as in `schema/`.
//!
//! A file holds the server of its interface and the trait it is written over: what the server needs
//! of the rest of the kernel, in a few functions. So what a method answers to which parameters is
//! here, and runs on the host as it does in the kernel; waiting, waking and memory are behind the trait, which
//! a call in progress implements (`kernel_ops::object::Calling`). What only the machine can do, devices and
//! registers, `kernel/sys/src/object` implements.
//!
//! A method that cannot answer at once arranges for its completion through the trait and returns
//! `NoResult::Later`. An exception leaves everything as it was.
#![no_std]

pub mod console;
pub mod endpoint;
pub mod entropy;
pub mod frame_allocator;
pub mod interrupt;
pub mod memory_object;
pub mod process_directory;
pub mod process_handle;
pub mod process_spawner;
pub mod scheduler_control;
pub mod scheduling_policy;
pub mod system_info;
pub mod thread_control;
pub mod thread_handle;
pub mod thread_spawner;
pub mod timer;
pub mod trace;
pub mod user_session;
pub mod virtual_memory;

use abi_types::InterfaceTag;
use schema_wire::{Exception, ExceptionKind, Method, NoResult};

/// How many capabilities a method of an interface that the kernel serves takes.
pub fn takes(interface: InterfaceTag, method: u16) -> u16 {
    type SpawnImage = schema::process_spawner::methods::SpawnImage;
    u16::from((interface, method) == (SpawnImage::INTERFACE, SpawnImage::ORDINAL))
}

/// An exception with this sentence.
fn refuse(kind: ExceptionKind, why: &str) -> NoResult {
    NoResult::Exception(Exception::new(kind, why))
}
