//! The other processors: their records, and their state once released.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::devices;
use crate::entry::{State, capos_conformance_processor, registers};
use crate::memory::{kind_of_direct, word};
use crate::report::yes;
use crate::requests::{Answer, MP, STACK};
use crate::say;

/// The record of the processor that has just said everything.
static DONE: AtomicU64 = AtomicU64::new(0);

/// The first processor's root, which the others must share.
static ROOT: AtomicU64 = AtomicU64::new(0);

/// Runs on a released processor and prints its lines; the first one waits meanwhile.
pub extern "sysv64" fn processor_main(
    record: u64,
    stack: u64,
    return_address: u64,
    flags: u64,
    others: u64,
) -> ! {
    let id = word(record) >> 32;
    say!("processor {id} registers-zero {}", yes(others == 0));
    say!("processor {id} flags {flags:#x} return-address {return_address}");
    say!("processor {id} stack kind {} ends-on-page {}", kind_of_direct(stack), yes(is_top(stack)));
    let size = if STACK.is_asked() { STACK.member(0) } else { 64 << 10 };
    let apart = stack.abs_diff(registers().stack) >= size;
    say!("processor {id} stack-of-its-own {}", yes(apart));
    let state = State::read();
    state_lines("processor", &state);
    say!("processor {id} same-tables {}", yes(state.cr3 == ROOT.load(Ordering::Relaxed)));
    if let Some((spurious, priority, masked)) = devices::local_apic() {
        let masked = yes(masked);
        say!(
            "processor {id} local-apic spurious {spurious:#x} priority {priority} masked {masked}"
        );
        say!("processor {id} nmi-pin {}", devices::nmi_pin());
    }
    // Pairs with the first processor's acquire load: its next line comes after these.
    DONE.store(record, Ordering::Release);
    loop {
        x86_64::instructions::hlt();
    }
}

/// Whether a stack pointer is one return address below the end of a page.
pub fn is_top(stack: u64) -> bool {
    stack % 4096 == 4096 - 8
}

/// The state every processor must have.
pub fn state_lines(who: &str, state: &State) {
    say!("{who} cr0 {:#x} cr4 {:#x} efer {:#x}", state.cr0, state.cr4, state.efer);
    say!("{who} pat {:#018x}", state.pat);
    say!("{who} fs-base {:#x} gs-base {:#x}", state.bases[0], state.bases[1]);
    let [cs, ds, es, ss, fs, gs, ldtr, tr] = state.selectors;
    say!("{who} cs {cs:#x} ds {ds:#x} es {es:#x} ss {ss:#x} fs {fs:#x} gs {gs:#x}");
    say!("{who} idt limit {:#x} base {:#x} ldtr {ldtr:#x}", state.idt.0, state.idt.1);
    let descriptor = state.gdt.1 + u64::from(tr);
    let (low, high) = (word(descriptor), word(descriptor + 8));
    let base = low >> 16 & 0xff_ffff | low >> 56 << 24 | high << 32;
    let limit = low & 0xffff | low >> 48 & 0xf;
    say!("{who} tr base {base:#x} limit {limit:#x}");
}

/// Prints the MP answer and what each processor has to say.
pub fn lines(root: u64) {
    let Some(response) = MP.response() else { return };
    let (ids, count, list) = (word(response + 8), word(response + 16), word(response + 24));
    say!("mp flags {} first {} count {count}", ids as u32, ids >> 32);
    ROOT.store(root, Ordering::Relaxed);
    for index in 0..count {
        let record = word(list + index * 8);
        let parked = word(record + 8) == 0 && word(record + 16) == 0 && word(record + 24) == 0;
        let (uid, id) = (word(record) as u32, word(record) >> 32);
        say!("mp record uid {uid} id {id} kind {} parked {}", kind_of_direct(record), yes(parked));
        if id == ids >> 32 {
            continue;
        }
        let goto = (record + 16) as *const AtomicU64;
        // SAFETY: the record lives in the loader's memory, aligned. Release pairs with the
        // parked processor's load.
        unsafe {
            (*goto).store(capos_conformance_processor as *const () as u64, Ordering::Release)
        };
        while DONE.load(Ordering::Acquire) != record {
            core::hint::spin_loop();
        }
    }
}
