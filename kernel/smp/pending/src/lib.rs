//! A thread's operations that wait for their completion: one cell each, fixed in number.
//!
//! When an operation cannot complete at once, what its completion will need (user data, where the
//! payload is and where results go) is kept in a cell of its thread, and everyone else names it by
//! thread and cell. There are as many cells as completions can be owed, so a cell is there
//! whenever a ring accepts an operation.
//!
//! Contract:
//! - the thread alone takes cells, writes them and scans them; it writes before it lets anybody
//!   know the cell's number, through the lock of the object that waits;
//! - whoever claimed the operation's outcome from that object reads the cell and finishes it, once, which
//!   gives the right to the completion. The words are plain: the object's lock orders them;
//! - nothing here allocates, and nothing waits.
//!
//! Decided in ADR 68.
#![cfg_attr(not(any(test, loom)), no_std)]

mod cell;
mod cells;

pub use cell::{Bound, Buffers, Cell, Limit, Operation, Target};
pub use cells::Cells;
