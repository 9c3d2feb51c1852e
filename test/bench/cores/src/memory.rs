//! Frames, page tables, heap slots; clocks.

use core_address::{Frame, FrameRange, VirtAddr};
use core_clock::Rate;
use core_frames::{Frames, Order};
use core_oneshot::OneShot;
use core_paging::tree::{map, protect, translate, unmap};
use core_paging::{Access, Entry, PageSizes, Request, Rights, TableStore};
use core_slab::{Class, Occupancy};
use std::hint::black_box;

use crate::Bench;

/// Times each.
pub fn run(bench: &Bench) {
    frames(bench);
    paging(bench);
    slab(bench);
    clock(bench);
}

fn frames(bench: &Bench) {
    const SPAN: usize = 1 << 18;
    let mut storage = vec![0; Frames::words_needed(SPAN)];
    let mut frames = Frames::new(SPAN, &mut storage).unwrap();
    let all = FrameRange::new(Frame::new(0).unwrap(), Frame::new(SPAN as u64).unwrap()).unwrap();
    frames.add(all).unwrap();
    for (name, order) in [("a frame", 0), ("512 frames", 9)] {
        let order = Order::new(order).unwrap();
        bench.run(&format!("frames: take {name} of a gigabyte and give it back"), |_| {
            let frame = frames.allocate(order).unwrap();
            frames.release(black_box(frame), order).unwrap();
        });
    }
}

/// Tables in a list, the frame's number the place.
struct Tables {
    tables: Vec<Vec<Entry>>,
    free: Vec<u64>,
}

impl TableStore for Tables {
    fn read(&self, table: Frame, index: usize) -> Entry {
        self.tables[table.number() as usize][index]
    }
    fn write(&mut self, table: Frame, index: usize, entry: Entry) {
        self.tables[table.number() as usize][index] = entry;
    }
    fn new_table(&mut self) -> Option<Frame> {
        Frame::new(self.free.pop()?)
    }
    fn free_table(&mut self, table: Frame) {
        self.free.push(table.number());
    }
}

fn paging(bench: &Bench) {
    let mut tables =
        Tables { tables: vec![vec![Entry::EMPTY; 512]; 16], free: (0..16).rev().collect() };
    let root = tables.new_table().unwrap();
    let request = |page: u64| Request {
        virt: VirtAddr::new(0x40_0000 + page * 4096).unwrap(),
        frame: Frame::new(0x1000).unwrap(),
        pages: 1,
        rights: Rights::user(Access::Write),
        sizes: PageSizes::SMALL,
    };
    map(&mut tables, root, request(0)).unwrap();
    let (beside, far) = (request(1), request(1 << 20));
    for (name, request) in [("beside another", beside), ("with tables of its own", far)] {
        bench.run(&format!("paging: map and unmap a page {name}"), |_| {
            map(&mut tables, root, black_box(request)).unwrap();
            unmap(&mut tables, root, request.virt, 1, |frame, _, _| _ = black_box(frame)).unwrap();
        });
    }
    let virt = request(0).virt;
    bench.run("paging: protect a page, twice", |_| {
        for access in [Access::Read, Access::Write] {
            protect(&mut tables, root, virt, 1, access).unwrap();
        }
    });
    bench.run("paging: translate", |_| {
        let _ = black_box(translate(&tables, root, black_box(virt)));
    });
}

fn slab(bench: &Bench) {
    bench.run("slab: find a class", |n| {
        let _ = black_box(Class::for_layout(black_box(16 + n as usize % 1000), 8));
    });
    let mut page = Occupancy::new(Class::for_layout(64, 8).unwrap());
    bench.run("slab: take a slot and give it back", |_| {
        let slot = page.take().unwrap();
        black_box(page.give_back(black_box(slot)));
    });
}

fn clock(bench: &Bench) {
    let rate = Rate::from_hz(2_400_000_000).unwrap();
    bench.run("clock: ticks to nanoseconds", |n| {
        black_box(rate.ns(black_box(n << 20)));
    });
    let mut timer = OneShot::new();
    bench.run("oneshot: arm and fire", |n| {
        let _ = black_box(timer.arm(n, n + 5));
        let _ = black_box(timer.fired(n + 5));
    });
}
