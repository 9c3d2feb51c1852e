//! What is kept of one operation.

use abi_ring::{Credit, CreditCell, Payload, Room};
use abi_sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The answer to a call: the service's process and the call's key there.
    Call {
        /// Position of the process that serves, below 2²⁴.
        process: u32,
        /// Which use of that position.
        generation: u32,
        /// The call's key, as bits.
        key: u64,
    },
    /// A call: the receive's key in the thread's own service, as bits.
    Recv {
        /// The key.
        key: u64,
    },
    /// A deadline: that of the timer beside the cell.
    Sleep,
    /// Another thread's end: its key, as bits.
    Join {
        /// The key.
        thread: u64,
    },
    /// A wake at an address: which wait of the thread.
    Park {
        /// Its ticket.
        ticket: u32,
    },
    /// Input of the console.
    Read,
    /// A change of the address space that other CPUs have to hear of: it takes place whatever happens.
    Memory,
    /// Room for output to the console.
    Write,
    /// A process's end: its key, as bits.
    End {
        /// The key.
        process: u64,
    },
    /// An interrupt of a line: its place.
    Interrupt {
        /// The place.
        place: u32,
    },
}

/// What the timer beside a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Limit {
    /// The end of a sleep.
    Sleep = 1,
    /// A call's deadline.
    Call = 2,
    /// The time limit of a park.
    Park = 3,
    /// When a line that is waited for may be heard again.
    Line = 4,
}

/// What bounds an operation in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it is.
    pub limit: Limit,
    /// Which of the times that the timer beside the cell was armed.
    pub arming: u32,
}

/// What an operation asked for, but for the right to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// CALL: the method.
    pub method: u16,
    /// CALL: capabilities that go along, at most `MAX_TRANSFERS`.
    pub transfers: u8,
    /// Capabilities that may come with what comes in, at most `MAX_TRANSFERS`.
    pub accepts: u8,
    /// CALL: what goes out.
    pub payload: Payload,
    /// Where what comes in goes.
    pub room: Room,
}

impl Operation {
    /// One that sends nothing, and takes so many capabilities with what comes in.
    #[inline]
    pub const fn receiving(room: Room, accepts: u8) -> Self {
        let payload = Payload::Inline { slot: 0, length: 0 };
        Self { method: 0, transfers: 0, accepts, payload, room }
    }
}

/// The registered buffers that an operation names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// What goes out is there.
    pub payload: Option<u16>,
    /// What comes in goes there.
    pub room: Option<u16>,
}

impl Buffers {
    /// None: most operations.
    pub const NONE: Self = Self { payload: None, room: None };
}

impl Operation {
    /// The registered buffers that it names.
    #[inline]
    pub const fn buffers(&self) -> Buffers {
        let payload = match self.payload {
            Payload::Registered { buffer, .. } => Some(buffer),
            _ => None,
        };
        let room = match self.room {
            Room::Registered { buffer, .. } => Some(buffer),
            _ => None,
        };
        Buffers { payload, room }
    }
}

/// The words of a cell.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Cell {
    credit: CreditCell,
    /// Method, transfers out and in, forms of payload and room, inline slot or buffer of the payload.
    head: AtomicU64,
    /// Length of the payload, capacity of the room.
    sizes: AtomicU64,
    payload_address: AtomicU64,
    room_address: AtomicU64,
    /// Kind of the target, and the process of a call's.
    target: AtomicU64,
    key: AtomicU64,
    /// What the timer beside the cell is for (0: it bounds nothing), and how often it was armed.
    bound: AtomicU64,
}

const INLINE: u64 = 0;
const ADDRESS: u64 = 1;
const REGISTERED: u64 = 2;

/// Kinds of a target, and where they are in its word.
const CALL: u64 = 0;
const RECV: u64 = 1;
const SLEEP: u64 = 2;
const JOIN: u64 = 3;
const PARK: u64 = 4;
const READ: u64 = 5;
const WRITE: u64 = 6;
const MEMORY: u64 = 7;
const END: u64 = 8;
const INTERRUPT: u64 = 9;
const KIND_SHIFT: u32 = 24;

const SLEEP_LIMIT: u64 = Limit::Sleep as u64;
const CALL_LIMIT: u64 = Limit::Call as u64;
const PARK_LIMIT: u64 = Limit::Park as u64;
const LINE_LIMIT: u64 = Limit::Line as u64;
const LIMIT_MASK: u64 = 0xff;
const ARMING_SHIFT: u32 = 32;

const METHOD_SHIFT: u32 = 0;
const TRANSFERS_SHIFT: u32 = 16;
const ACCEPTS_SHIFT: u32 = 20;
static_assertions::const_assert!(
    abi_types::limits::MAX_TRANSFERS < 1 << (ACCEPTS_SHIFT - TRANSFERS_SHIFT)
);
const PAYLOAD_FORM_SHIFT: u32 = 24;
const ROOM_FORM_SHIFT: u32 = 28;
const PAYLOAD_SLOT_SHIFT: u32 = 32;
const ROOM_BUFFER_SHIFT: u32 = 48;

impl Cell {
    /// Keeps an operation. By the owner, before anyone else knows of it.
    #[inline]
    pub(crate) fn set(&self, credit: Credit, operation: &Operation) {
        let (payload_form, slot, length, payload_address) = match operation.payload {
            Payload::Inline { slot, length } => (INLINE, slot, length, 0),
            Payload::Address { address, length } => (ADDRESS, 0, length, address),
            Payload::Registered { buffer, offset, length } => (REGISTERED, buffer, length, offset),
        };
        let (room_form, room_buffer, capacity, room_address) = match operation.room {
            Room::Inline => (INLINE, 0, 0, 0),
            Room::Address { address, capacity } => (ADDRESS, 0, capacity, address),
            Room::Registered { buffer, offset, capacity } => (REGISTERED, buffer, capacity, offset),
        };
        self.credit.put(credit);
        self.head.store(
            u64::from(operation.method) << METHOD_SHIFT
                | u64::from(operation.transfers) << TRANSFERS_SHIFT
                | u64::from(operation.accepts) << ACCEPTS_SHIFT
                | payload_form << PAYLOAD_FORM_SHIFT
                | room_form << ROOM_FORM_SHIFT
                | u64::from(slot) << PAYLOAD_SLOT_SHIFT
                | u64::from(room_buffer) << ROOM_BUFFER_SHIFT,
            Relaxed,
        );
        self.sizes.store(u64::from(length) | u64::from(capacity) << 32, Relaxed);
        // Inline operations have no addresses, and are those that have to be fast.
        if payload_form | room_form != INLINE {
            self.payload_address.store(payload_address, Relaxed);
            self.room_address.store(room_address, Relaxed);
        }
    }

    /// Keeps an operation whose message and results are inline: as [`set`](Self::set), in fewer
    /// steps.
    #[inline]
    pub(crate) fn set_inline(&self, credit: Credit, method: u16, slot: u16, length: u32) {
        self.credit.put(credit);
        let head = u64::from(method) << METHOD_SHIFT | u64::from(slot) << PAYLOAD_SLOT_SHIFT;
        self.head.store(head, Relaxed);
        self.sizes.store(u64::from(length), Relaxed);
    }

    /// Whether the operation names a registered buffer. Of an operation that is pending, as the next.
    #[inline(always)]
    pub fn names_buffers(&self) -> bool {
        const EITHER: u64 = REGISTERED << PAYLOAD_FORM_SHIFT | REGISTERED << ROOM_FORM_SHIFT;
        static_assertions::const_assert!(REGISTERED & (INLINE | ADDRESS) == 0);
        self.head.load(Relaxed) & EITHER != 0
    }

    /// The registered buffers that the operation names.
    #[inline]
    pub fn buffers(&self) -> Buffers {
        if self.names_buffers() { self.operation().buffers() } else { Buffers::NONE }
    }

    /// The operation, for whoever claimed it.
    #[inline]
    pub fn operation(&self) -> Operation {
        let head = self.head.load(Relaxed);
        let sizes = self.sizes.load(Relaxed);
        let (length, capacity) = (sizes as u32, (sizes >> 32) as u32);
        let slot = (head >> PAYLOAD_SLOT_SHIFT) as u16;
        let buffer = (head >> ROOM_BUFFER_SHIFT) as u16;
        let payload = match head >> PAYLOAD_FORM_SHIFT & 0xf {
            INLINE => Payload::Inline { slot, length },
            ADDRESS => Payload::Address { address: self.payload_address.load(Relaxed), length },
            _ => Payload::Registered {
                buffer: slot,
                offset: self.payload_address.load(Relaxed),
                length,
            },
        };
        let room = match head >> ROOM_FORM_SHIFT & 0xf {
            INLINE => Room::Inline,
            ADDRESS => Room::Address { address: self.room_address.load(Relaxed), capacity },
            _ => Room::Registered { buffer, offset: self.room_address.load(Relaxed), capacity },
        };
        Operation {
            method: (head >> METHOD_SHIFT) as u16,
            transfers: (head >> TRANSFERS_SHIFT) as u8 & 0xf,
            accepts: (head >> ACCEPTS_SHIFT) as u8 & 0xf,
            payload,
            room,
        }
    }

    /// Says that the timer beside it is armed once more, to bound it; which arming that is. By the owner, before
    /// anyone else knows of the operation.
    #[inline]
    pub fn bind(&self, limit: Limit) -> u32 {
        let arming = ((self.bound.load(Relaxed) >> ARMING_SHIFT) as u32).wrapping_add(1);
        self.bound.store(u64::from(arming) << ARMING_SHIFT | limit as u64, Relaxed);
        arming
    }

    /// What bounds it, under the completion lock.
    #[inline]
    pub fn bound(&self) -> Option<Bound> {
        let word = self.bound.load(Relaxed);
        let limit = match word & LIMIT_MASK {
            SLEEP_LIMIT => Limit::Sleep,
            CALL_LIMIT => Limit::Call,
            PARK_LIMIT => Limit::Park,
            LINE_LIMIT => Limit::Line,
            _ => return None,
        };
        Some(Bound { limit, arming: (word >> ARMING_SHIFT) as u32 })
    }

    /// Whether anything bounds it, under the completion lock.
    #[inline(always)]
    pub fn is_bound(&self) -> bool {
        self.bound.load(Relaxed) & LIMIT_MASK != 0
    }

    /// Nothing bounds it any more; under the completion lock. How often its timer was armed is kept.
    #[inline]
    pub fn unbind(&self) {
        self.bound.store(self.bound.load(Relaxed) & !LIMIT_MASK, Relaxed);
    }

    /// What the operation's SQE called itself.
    #[inline]
    pub fn user_data(&self) -> u64 {
        self.credit.user_data()
    }

    /// The right to the operation's completion, when its cell is given back.
    #[inline]
    pub(crate) fn credit(&self) -> Credit {
        self.credit.take()
    }

    /// Says what it waits for. By the owner.
    #[inline]
    pub fn set_target(&self, target: Target) {
        // The position of a process ends below the kind, and the kind of a call is 0: its word is the
        // process's key as it is.
        let (word, key) = match target {
            Target::Call { process, generation, key } => {
                debug_assert!(process < 1 << KIND_SHIFT, "a position has at most 24 bits");
                (u64::from(process) | u64::from(generation) << 32, key)
            }
            Target::Recv { key } => (RECV << KIND_SHIFT, key),
            Target::Sleep => (SLEEP << KIND_SHIFT, 0),
            Target::Join { thread } => (JOIN << KIND_SHIFT, thread),
            Target::Park { ticket } => (PARK << KIND_SHIFT, u64::from(ticket)),
            Target::Read => (READ << KIND_SHIFT, 0),
            Target::Memory => (MEMORY << KIND_SHIFT, 0),
            Target::Write => (WRITE << KIND_SHIFT, 0),
            Target::End { process } => (END << KIND_SHIFT, process),
            Target::Interrupt { place } => (INTERRUPT << KIND_SHIFT, u64::from(place)),
        };
        self.target.store(word, Relaxed);
        self.key.store(key, Relaxed);
    }

    /// What it waits for.
    #[inline]
    pub fn target(&self) -> Target {
        let word = self.target.load(Relaxed);
        let key = self.key.load(Relaxed);
        match word >> KIND_SHIFT & 0xff {
            CALL => Target::Call { process: word as u32, generation: (word >> 32) as u32, key },
            RECV => Target::Recv { key },
            SLEEP => Target::Sleep,
            JOIN => Target::Join { thread: key },
            PARK => Target::Park { ticket: key as u32 },
            READ => Target::Read,
            WRITE => Target::Write,
            END => Target::End { process: key },
            INTERRUPT => Target::Interrupt { place: key as u32 },
            _ => Target::Memory,
        }
    }
}
