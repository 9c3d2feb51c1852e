//! Values of every shape: nothing, as much as a select holds itself, more than that, aligned to much.
use alloc::boxed::Box;
use core::fmt::Debug;
use core::ptr;

use fiber::oneshot;
use fiber_chan::{Receiver, Select, Sender, bounded, unbounded};
use fiber_nursery::nursery;

use crate::runtime;

/// As a line for another core is aligned, and more.
#[derive(Clone, Debug, PartialEq)]
#[repr(align(256))]
struct Aligned(u8);

fn select_send<V>(to: &Sender<V>, value: V) {
    let mut set = Select::new();
    set.send(to);
    set.select().unwrap().send(to, value).unwrap();
}

/// Takes a value and leaves it, and then takes it.
fn select_recv<V>(from: &Receiver<V>) -> V {
    let mut set = Select::new();
    set.recv(from);
    drop(set.select().unwrap());
    set.select().unwrap().recv(from).unwrap()
}

/// Every way of sending meets every way of receiving.
fn carry<V: Clone + Debug + PartialEq + Send + Sync>(value: &V) {
    let is_whole = |back: V| {
        assert_eq!(&back, value);
        assert_eq!(ptr::from_ref(&back).addr() % align_of::<V>(), 0);
    };
    for channel in [|| bounded(0), || bounded(1), unbounded] {
        let (tx, rx) = channel();
        nursery(|n| {
            n.spawn(|| {
                for _ in 0..2 {
                    tx.send(value.clone()).unwrap();
                    select_send(&tx, value.clone());
                    select_send(&tx, value.clone());
                    tx.send(value.clone()).unwrap();
                }
            });
            for _ in 0..2 {
                is_whole(rx.recv().unwrap());
                is_whole(rx.recv().unwrap());
                is_whole(select_recv(&rx));
                is_whole(select_recv(&rx));
            }
            assert!(rx.is_empty());
            let (tx, rx) = oneshot::channel();
            n.spawn(|| tx.send(value.clone()).unwrap());
            is_whole(rx.recv().unwrap());
        });
    }
}

pub fn values_of_any_size_and_alignment_arrive_whole() {
    for workers in [1, 2] {
        runtime(workers).run(|| {
            carry(&());
            carry(&[0_u64; 0]);
            carry(&1_u8);
            carry(&[1_u64, 2, 3, 4]);
            carry(&[1_u64, 2, 3, 4, 5]);
            carry(&[7_u16; 500]);
            carry(&Aligned(1));
            carry(&[Aligned(2), Aligned(3)]);
            carry(&Box::new([1_u8; 3]));
        });
    }
}
