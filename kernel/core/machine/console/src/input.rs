//! Bytes that have arrived and were not read.

/// A ring of at most `N` of them. What comes when it is full is dropped and counted: what is there is older,
/// and whoever types sees that nothing is echoed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Input<const N: usize> {
    bytes: [u8; N],
    first: usize,
    length: usize,
    dropped: u64,
}

impl<const N: usize> Input<N> {
    /// None.
    pub const fn new() -> Self {
        Self { bytes: [0; N], first: 0, length: 0, dropped: 0 }
    }

    /// A byte has arrived; `false` if there is no place for it.
    pub fn push(&mut self, byte: u8) -> bool {
        let at = (self.first + self.length).checked_rem(N);
        match at.filter(|_| self.length < N).and_then(|at| self.bytes.get_mut(at)) {
            Some(place) => {
                *place = byte;
                self.length += 1;
                true
            }
            None => {
                self.dropped += 1;
                false
            }
        }
    }

    /// The oldest.
    pub fn pop(&mut self) -> Option<u8> {
        if self.length == 0 {
            return None;
        }
        let byte = self.bytes.get(self.first).copied()?;
        self.first = (self.first + 1) % N;
        self.length -= 1;
        Some(byte)
    }

    /// How many wait.
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether none waits.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many were dropped.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl<const N: usize> Default for Input<N> {
    fn default() -> Self {
        Self::new()
    }
}
