//! The list of regions of a process grows, and is paid for.

use core_ledger::{Ledger, Line, Profile};
use core_vm::{PageRange, Region, VmError};
use kernel_ops::map::{AddressMap, MAX_REGIONS, MapError};
use test_machine::HostShared;

fn ledger() -> &'static Ledger {
    let profile = Profile { kernel_bytes: 1 << 20, ..Profile::NONE };
    Box::leak(Box::new(Ledger::new(&profile)))
}

fn pages(first: u64, count: u64) -> PageRange {
    PageRange::from_page(first, count).unwrap()
}

#[test]
fn the_list_grows_up_to_what_a_process_may_have() {
    let (map, ledger) = (AddressMap::<HostShared>::new(), ledger());
    assert_eq!(map.find(7), Err((0, u64::MAX)));
    let mut made = 0;
    let refused = loop {
        let range = pages(10 + 2 * made, 1);
        match map.change(ledger, || {}, |regions| regions.reserve(range)) {
            Ok(()) => made += 1,
            Err(refused) => break refused,
        }
    };
    assert_eq!((made, refused), (MAX_REGIONS as u64, MapError::Vm(VmError::Full)));
    assert_eq!(map.find(11), Err((11, 12)));
    assert_eq!(map.find(12).map(|region| region.range), Ok(pages(12, 1)));
    let used = |ledger: &Ledger| ledger.reading(Line::KernelBytes).used as usize;
    assert_eq!(used(ledger), map.places() * size_of::<Region>());
    while !map.drain(100, |_| panic!("reserved pages have nothing behind them")) {}
    assert_eq!(used(ledger), 0);
    assert_eq!(map.find(12), Err((0, u64::MAX)));
}
