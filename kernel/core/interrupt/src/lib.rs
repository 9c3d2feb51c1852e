//! One interrupt line in the hands of a program: what is counted, who waits, and whether the line is open.
//!
//! In here: [`Line`], its counts, its waiter, and the bound on how often it interrupts. Not in here: controllers and
//! vectors (`core_irq`), completing who waits.
//!
//! # Contract
//!
//! - A line is masked until it is enabled. A level-triggered one is not heard from each interrupt until it is
//!   acknowledged: that much its controller does by itself, and is told by [`Tell::acknowledge`]. Everything else it is
//!   told by [`Tell::open`].
//! - Every interrupt is counted once, and reported by one wait.
//! - One party waits at a time.
//! - A line interrupts at most [`BURST`] times in [`WINDOW_NS`], whatever its device and its driver do: then it is masked
//!   until the window is over and somebody asks for it again, by a wait, an acknowledgement, or a wait that was there
//!   when it ended ([`Waiting::Later`]).
//! - An error changes nothing. What a controller is to be told is told before the next call.
//!
//! Decided in ADR 351.
#![no_std]

/// Interrupts of a line in a window at most. An interrupt takes about 2,000 instructions: these are a fifteenth of a
/// CPU, and 32,000 a second are more than a device that is served in user mode can use.
pub const BURST: u32 = 32;
/// How long a window is, from its first interrupt on.
pub const WINDOW_NS: u64 = 1_000_000;

/// What on a line is an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A change.
    Edge,
    /// A state, for as long as it lasts.
    Level,
}

/// What the line's controller is to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the controller does not know by itself"]
pub struct Tell {
    /// The line is to be open, or masked.
    pub open: Option<bool>,
    /// The last interrupt was answered.
    pub acknowledge: bool,
}

/// What an interrupt leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Raised<P> {
    /// Who waited, and the count that it is told.
    pub complete: Option<(P, u64)>,
    /// For the controller.
    pub tell: Tell,
}

/// What a wait comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Waiting {
    /// It is over: so many interrupts.
    Now(u64),
    /// It lasts. If there is a time, the line is masked until then, and [`Line::reopen`] is to be called.
    Later(Option<u64>),
}

/// Another party waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied;

/// What is told about a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// How it triggers.
    pub trigger: Trigger,
    /// Whether it is to be heard.
    pub is_enabled: bool,
    /// Interrupts since boot.
    pub total: u64,
}

/// A line in the hands of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<P> {
    trigger: Trigger,
    is_enabled: bool,
    /// What its controller was told last.
    is_open: bool,
    /// Level: the last interrupt was not acknowledged.
    is_unanswered: bool,
    total: u64,
    unreported: u64,
    waiter: Option<P>,
    /// When the window began, and how many interrupts it has had.
    window_ns: u64,
    in_window: u32,
}

impl<P: Copy + PartialEq> Line<P> {
    /// A line that is masked, with so many interrupts before.
    pub const fn new(trigger: Trigger, total: u64) -> Self {
        Self {
            trigger,
            is_enabled: false,
            is_open: false,
            is_unanswered: false,
            total,
            unreported: 0,
            waiter: None,
            window_ns: 0,
            in_window: 0,
        }
    }

    /// When the window is over, if it has had all its interrupts.
    fn closed_until(&self, now_ns: u64) -> Option<u64> {
        let end_ns = self.window_ns.saturating_add(WINDOW_NS);
        (self.in_window >= BURST && now_ns < end_ns).then_some(end_ns)
    }

    /// What the controller is to be told for the line to be as it should be now.
    fn settle(&mut self, now_ns: u64) -> Option<bool> {
        let open = self.is_enabled && self.closed_until(now_ns).is_none();
        let is_news = open != self.is_open;
        self.is_open = open;
        is_news.then_some(open)
    }

    /// The line has interrupted.
    pub fn raised(&mut self, now_ns: u64) -> Raised<P> {
        self.total = self.total.saturating_add(1);
        self.unreported = self.unreported.saturating_add(1);
        self.is_unanswered = self.trigger == Trigger::Level;
        if self.in_window == 0 || now_ns >= self.window_ns.saturating_add(WINDOW_NS) {
            self.window_ns = now_ns;
            self.in_window = 0;
        }
        self.in_window = self.in_window.saturating_add(1);
        let complete =
            self.waiter.take().map(|party| (party, core::mem::take(&mut self.unreported)));
        Raised { complete, tell: Tell { open: self.settle(now_ns), acknowledge: false } }
    }

    /// `party` waits for interrupts that nobody has been told of.
    pub fn wait(&mut self, party: P, now_ns: u64) -> Result<(Waiting, Tell), Occupied> {
        if self.waiter.is_some() {
            return Err(Occupied);
        }
        let tell = Tell { open: self.settle(now_ns), acknowledge: false };
        if self.unreported > 0 {
            return Ok((Waiting::Now(core::mem::take(&mut self.unreported)), tell));
        }
        self.waiter = Some(party);
        // Also of a line that is masked: it may be enabled meanwhile.
        Ok((Waiting::Later(self.closed_until(now_ns)), tell))
    }

    /// Whoever waits, if it is as `is_it` says, waits no more.
    pub fn give_up(&mut self, is_it: impl FnOnce(&P) -> bool) -> bool {
        self.waiter.take_if(|party| is_it(party)).is_some()
    }

    /// The window may be over while somebody waits.
    pub fn reopen(&mut self, now_ns: u64) -> Tell {
        Tell { open: self.settle(now_ns), acknowledge: false }
    }

    /// The device is served.
    pub fn acknowledge(&mut self, now_ns: u64) -> Tell {
        let acknowledge = core::mem::take(&mut self.is_unanswered);
        Tell { open: self.settle(now_ns), acknowledge }
    }

    /// Whether the line is to be heard.
    pub fn set_enabled(&mut self, is_enabled: bool, now_ns: u64) -> Tell {
        self.is_enabled = is_enabled;
        Tell { open: self.settle(now_ns), acknowledge: false }
    }

    /// Nobody has the line any more; who waited.
    pub fn end(&mut self) -> Option<P> {
        self.waiter.take()
    }

    /// What it is.
    pub const fn info(&self) -> Info {
        Info { trigger: self.trigger, is_enabled: self.is_enabled, total: self.total }
    }
}
