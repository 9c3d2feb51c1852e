//! What a channel holds: a ring that never grows, or blocks as they are needed.

use alloc::collections::VecDeque;

/// Values of a block: an unbounded channel allocates once for so many.
const BLOCK: usize = 64;

/// Bounded channels up to this capacity have their ring from the start; larger ones grow to it.
const EAGER: usize = 4096;

/// The values, first in, first out.
pub(crate) enum Buffer<T> {
    Ring(VecDeque<T>),
    /// No value is ever moved to make room.
    Blocks {
        blocks: VecDeque<VecDeque<T>>,
        spare: Option<VecDeque<T>>,
        len: usize,
    },
}

impl<T> Buffer<T> {
    pub fn new(capacity: Option<usize>) -> Self {
        match capacity {
            Some(capacity) => Self::Ring(VecDeque::with_capacity(capacity.min(EAGER))),
            None => Self::Blocks { blocks: VecDeque::new(), spare: None, len: 0 },
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Ring(ring) => ring.len(),
            Self::Blocks { len, .. } => *len,
        }
    }

    #[inline]
    pub fn push(&mut self, value: T) {
        match self {
            Self::Ring(ring) => ring.push_back(value),
            Self::Blocks { blocks, spare, len } => {
                *len += 1;
                match blocks.back_mut() {
                    Some(last) if last.len() < BLOCK => last.push_back(value),
                    _ => {
                        let mut block =
                            spare.take().unwrap_or_else(|| VecDeque::with_capacity(BLOCK));
                        block.push_back(value);
                        blocks.push_back(block);
                    }
                }
            }
        }
    }

    #[inline]
    pub fn push_front(&mut self, value: T) {
        match self {
            Self::Ring(ring) => ring.push_front(value),
            Self::Blocks { blocks, len, .. } => {
                *len += 1;
                match blocks.front_mut() {
                    Some(first) => first.push_front(value),
                    None => blocks.push_back(VecDeque::from([value])),
                }
            }
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        match self {
            Self::Ring(ring) => ring.pop_front(),
            Self::Blocks { blocks, spare, len } => {
                let first = blocks.front_mut()?;
                let value = first.pop_front()?;
                *len -= 1;
                if first.is_empty() && blocks.len() > 1 {
                    *spare = blocks.pop_front();
                }
                Some(value)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_first_in_first_out() {
        for capacity in [None, Some(1000)] {
            let mut buffer = Buffer::new(capacity);
            let (mut next_in, mut next_out) = (0, 0);
            for round in 0..50 {
                for _ in 0..round * 7 % 90 {
                    buffer.push(next_in);
                    next_in += 1;
                }
                for _ in 0..round * 5 % 80 {
                    if let Some(value) = buffer.pop() {
                        assert_eq!(value, next_out);
                        next_out += 1;
                    }
                }
                assert_eq!(buffer.len(), next_in - next_out);
            }
            buffer.push_front(usize::MAX);
            assert_eq!(buffer.pop(), Some(usize::MAX));
        }
    }
}
