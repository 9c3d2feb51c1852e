//! The lines of an account, as values and as types.

/// A resource that is counted, one line of every account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// Slots of the capability table.
    CapSlots,
    /// Thread records.
    Threads,
    /// Pages of kernel stacks.
    KernelStackPages,
    /// Page frames of its memory and page tables.
    Frames,
    /// Pending sleeps.
    SleepWaiters,
    /// Bytes of the kernel's heap.
    KernelBytes,
    /// Registered buffers.
    RegisteredBuffers,
}

impl Line {
    /// How many lines there are.
    pub const COUNT: usize = 7;

    /// All lines, each at its [`index`](Self::index).
    pub const ALL: [Self; Self::COUNT] = [
        Self::CapSlots,
        Self::Threads,
        Self::KernelStackPages,
        Self::Frames,
        Self::SleepWaiters,
        Self::KernelBytes,
        Self::RegisteredBuffers,
    ];

    /// Its position in an account.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What an exhausted line is reported as, and what would help.
    pub const fn exhausted(self) -> &'static str {
        match self {
            Self::CapSlots => "no capability slot left: release one, or raise capSlots",
            Self::Threads => "no thread record left: join or detach a thread, or raise threads",
            Self::KernelStackPages => "no kernel stack pages left: raise kernelStackPages",
            Self::Frames => "no frames left: unmap memory, or raise frames",
            Self::SleepWaiters => "no sleep left: wait for one to end, or raise sleepWaiters",
            Self::KernelBytes => {
                "no kernel memory left: end threads or send smaller messages, or raise kernelBytes"
            }
            Self::RegisteredBuffers => {
                "no registered buffer left: unregister one, or raise registeredBuffers"
            }
        }
    }
}

mod sealed {
    /// Only the types of this file are lines.
    pub trait Sealed {}
}

/// A line as a type, so that a charge cannot be released to another line.
pub trait Counted: sealed::Sealed {
    /// The same as a value.
    const LINE: Line;
}

macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl sealed::Sealed for $name {}

        impl Counted for $name {
            const LINE: Line = Line::$name;
        }
    )*};
}

counted! {
    /// [`Line::CapSlots`].
    CapSlots,
    /// [`Line::Threads`].
    Threads,
    /// [`Line::KernelStackPages`].
    KernelStackPages,
    /// [`Line::Frames`].
    Frames,
    /// [`Line::SleepWaiters`].
    SleepWaiters,
    /// [`Line::KernelBytes`].
    KernelBytes,
    /// [`Line::RegisteredBuffers`].
    RegisteredBuffers,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_at_its_index_and_has_its_own_message() {
        for (index, line) in Line::ALL.iter().enumerate() {
            assert_eq!(line.index(), index);
            let others = Line::ALL.iter().filter(|other| *other != line);
            assert!(others.clone().all(|other| other.exhausted() != line.exhausted()));
        }
    }
}
