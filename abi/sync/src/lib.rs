//! Atomics, cells and threads for code that is also model checked.
//!
//! In a kernel, a user program or a plain host build these are `core`'s own types and cost
//! nothing; under `cfg(loom)` they are loom's, so a model explores the very code that runs.
//! Concurrent crates take their atomics and interior mutability from here and nowhere else.
//!
//! Under `cfg(shuttle)`, which comes with `cfg(loom)`, they are shuttle's: for models with more
//! threads than can be explored whole, under one random schedule after the other.
//!
//! Also here, because they need `unsafe`: [`mask_below`], [`AtomicRef`], a shared place for a reference, [`OnceSlice`], a
//! table that is made once, [`GrowSlice`], one that grows, and [`BlockMemory`], the ring block in real memory. That is not modelled; `abi/ring` reaches it
//! through a trait that models implement for themselves.
#![cfg_attr(not(loom), no_std)]

/// A function that is `const` but for models, whose atomics and locks are made at run time.
#[macro_export]
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$meta])*
        $vis const fn $($rest)*
        #[cfg(loom)]
        $(#[$meta])*
        $vis fn $($rest)*
    };
}

mod atomic_ref;
mod block;
pub mod cell;
#[cfg(loom)]
mod checked_cell;
mod grow_slice;
mod mask;
#[cfg(all(loom, not(shuttle)))]
mod model;
mod once_slice;
#[cfg(shuttle)]
mod schedules;

pub use atomic_ref::AtomicRef;
pub use block::BlockMemory;
#[cfg(loom)]
pub use checked_cell::CheckedCell;
pub use grow_slice::{Back, GrowSlice, NotGrown, ROOM_GRAIN, Room};
pub use mask::mask_below;
pub use once_slice::OnceSlice;

/// Atomic types and fences.
pub mod atomic {
    #[cfg(not(loom))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
    #[cfg(all(loom, not(shuttle)))]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// What a spin loop does while it waits: tells the CPU, or lets the model switch threads.
#[inline]
pub fn spin_hint() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    thread::yield_now();
}

#[cfg(shuttle)]
pub use {
    schedules::{explore, random},
    shuttle::sync::{Arc, Mutex, MutexGuard},
    shuttle::{thread, thread_local},
};

#[cfg(all(loom, not(shuttle)))]
pub use {
    loom::sync::{Arc, Mutex, MutexGuard},
    loom::{thread, thread_local},
    model::{explore, model, random},
};
