//! What people type: bytes from the serial port and from a keyboard, waiting to be received.

use super::keyboard::Keyboard;
use core::sync::atomic::{AtomicU64, Ordering};
use core_console::Input;
use smp_lock::{LockClass, TicketLock};
use spin::Once;

/// Bytes that wait at most: more than a person types while nobody reads, and a pasted line.
const WAITING: usize = 1024;

static INPUT: TicketLock<Input<WAITING>> = TicketLock::with_class(LockClass::Input, Input::new());
static KEYBOARD: TicketLock<Option<Keyboard>> = TicketLock::with_class(LockClass::Keyboard, None);
/// Bytes that ever arrived.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
static ON_INPUT: Once<fn()> = Once::new();

/// What became of input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InputCounts {
    /// Bytes that arrived.
    pub arrived: u64,
    /// Those of them that were dropped because nobody read.
    pub dropped: u64,
}

/// What became of input so far.
pub fn input_counts() -> InputCounts {
    let dropped = INPUT.lock().dropped();
    InputCounts { arrived: count(), dropped }
}

/// Names what is called when input has arrived: in an interrupt, with no lock held. It may wake threads,
/// and must not print. Once.
pub fn on_input(tell: fn()) {
    ON_INPUT.call_once(|| tell);
}

/// Takes what was typed, as much as fits; how many bytes.
pub fn receive(into: &mut [u8]) -> usize {
    let mut input = INPUT.lock();
    let mut count = 0;
    for place in into {
        let Some(byte) = input.pop() else { break };
        *place = byte;
        count += 1;
    }
    count
}

pub(super) fn pop() -> Option<u8> {
    INPUT.lock().pop()
}

/// Bytes have arrived; what does not fit is dropped and counted.
pub(super) fn arrived(bytes: &[u8]) {
    let mut input = INPUT.lock();
    for byte in bytes {
        let _is_kept = input.push(*byte);
    }
    ARRIVED.fetch_add(bytes.len() as u64, Ordering::Relaxed);
}

pub(super) fn count() -> u64 {
    ARRIVED.load(Ordering::Relaxed)
}

/// Tells of input whoever wants to know; whether somebody does.
pub(super) fn tell() -> bool {
    ON_INPUT.get().is_some_and(|tell| {
        tell();
        true
    })
}

/// Whether there is a keyboard, which then interrupts.
pub(super) fn open_keyboard() -> bool {
    let mut keyboard = KEYBOARD.lock();
    if keyboard.is_none() {
        *keyboard = Keyboard::open();
    }
    keyboard.is_some()
}

pub(super) fn serve_keyboard() {
    if let Some(keyboard) = KEYBOARD.lock().as_mut() {
        keyboard.read(|bytes| arrived(bytes.as_slice()));
    }
}

pub(super) fn echo(code: u8) {
    if let Some(keyboard) = KEYBOARD.lock().as_mut() {
        keyboard.echo(code);
    }
}
