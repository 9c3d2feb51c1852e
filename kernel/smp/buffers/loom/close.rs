//! A buffer that is used on one CPU, looked at on another and closed on a third: it goes once, after its last use, and who
//! closes it is told.

use abi_sync::{Arc, CheckedCell, Mutex, thread};
use smp_buffers::{Left, Place};

/// The memory of a buffer: looked at by its users, and somebody else's when the buffer is gone.
type Memory = Arc<CheckedCell<u32>>;

struct World {
    place: Place<Memory, u32>,
    memory: Memory,
    /// Who was told of the end.
    told: Mutex<Vec<Option<u32>>>,
}

/// What is done wrongly.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    /// Nothing.
    None,
    /// Who looks does so without being counted.
    Uncounted,
    /// Who closes says who is to be told when it has left.
    LateWaiter,
}

impl World {
    fn new() -> Arc<Self> {
        let memory = Memory::new(CheckedCell::new(1));
        let place = Place::new();
        assert!(place.fill(memory.clone()).is_ok());
        Arc::new(Self { place, memory, told: Mutex::new(Vec::new()) })
    }

    fn left(&self, left: Left) {
        if left == Left::Last {
            let (buffer, waiter) = self.place.take().expect("the last to leave empties it");
            // The next owner of the memory writes.
            buffer.update(|word| *word = 2);
            self.told.lock().unwrap().push(waiter);
            self.place.free();
        }
    }

    /// A copy, by somebody for whom nothing is held.
    fn look(&self, mutant: Mutant) {
        if mutant == Mutant::Uncounted {
            if let Some(look) = self.place.look() {
                self.left(look.leave());
                assert_eq!(self.memory.get(), 1, "memory that is somebody else's was read");
            }
        } else if let Some(look) = self.place.look() {
            assert_eq!(look.buffer().expect("it is there").get(), 1);
            self.left(look.leave());
        }
    }

    /// An operation, which is accepted and completes.
    fn operate(&self) {
        if let Some(held) = self.place.hold() {
            held.stay();
            let look = self.place.look().expect("what is held can be looked at");
            assert_eq!(look.buffer().expect("it is there").get(), 1);
            self.left(look.leave());
            self.left(self.place.leave());
        }
    }

    fn close(&self, mutant: Mutant) {
        assert!(self.place.begin_close());
        if mutant == Mutant::LateWaiter {
            let left = self.place.leave();
            self.place.set_waiter(7);
            self.left(left);
        } else {
            self.place.set_waiter(7);
            self.left(self.place.leave());
        }
    }
}

fn closes_once(mutant: Mutant) {
    abi_sync::model(move || {
        let world = World::new();
        let (one, two) = (world.clone(), world.clone());
        let looks = thread::spawn(move || one.look(mutant));
        let operates = thread::spawn(move || two.operate());
        world.close(mutant);
        looks.join().unwrap();
        operates.join().unwrap();
        assert_eq!(*world.told.lock().unwrap(), [Some(7)], "the closer is told, once");
        assert!(world.place.is_free());
    });
}

#[test]
fn a_buffer_goes_once_after_its_last_use() {
    closes_once(Mutant::None);
}

#[test]
#[should_panic]
fn mutant_a_look_that_is_not_counted() {
    closes_once(Mutant::Uncounted);
}

#[test]
#[should_panic]
fn mutant_a_waiter_that_is_named_too_late() {
    closes_once(Mutant::LateWaiter);
}
