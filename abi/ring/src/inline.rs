//! Copies between inline slots and buffers, in 8-byte words.
//!
//! A copy moves exactly the bytes asked for: the unused bytes of a last word arrive as zero,
//! so what an earlier message left in a sender's slot does not leak to another receiver.

use abi_types::INLINE_BYTES;

/// Copies `bytes` bytes, at most a slot, word by word from `load` to `store`.
///
/// A message that fills a cache line is the one that calls are measured by, and is copied without
/// a loop.
#[inline(always)]
pub(crate) fn copy(bytes: u32, load: impl Fn(usize) -> u64, mut store: impl FnMut(usize, u64)) {
    if bytes != CACHE_LINE {
        return copy_any(bytes, load, store);
    }
    let [a, b, c, d] = [load(0), load(1), load(2), load(3)];
    store(0, a);
    store(1, b);
    store(2, c);
    store(3, d);
    let [a, b, c, d] = [load(4), load(5), load(6), load(7)];
    store(4, a);
    store(5, b);
    store(6, c);
    store(7, d);
}

const CACHE_LINE: u32 = 64;

/// Four words a round: most messages are a multiple of 32 bytes, and the loop then costs less
/// than the words.
#[inline]
fn copy_any(bytes: u32, load: impl Fn(usize) -> u64, mut store: impl FnMut(usize, u64)) {
    let bytes = (bytes as usize).min(INLINE_BYTES);
    let words = bytes / 8;
    let mut word = 0;
    while word + 4 <= words {
        let four = [load(word), load(word + 1), load(word + 2), load(word + 3)];
        let [a, b, c, d] = four;
        store(word, a);
        store(word + 1, b);
        store(word + 2, c);
        store(word + 3, d);
        word += 4;
    }
    while word < words {
        store(word, load(word));
        word += 1;
    }
    let rest = bytes % 8;
    if rest != 0 {
        store(word, load(word) & low_bytes(rest));
    }
}

/// A mask of the first `count` bytes of a word, `count` below 8.
#[inline]
const fn low_bytes(count: usize) -> u64 {
    (1 << (8 * count)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_exactly_the_bytes() {
        let source = [!0_u64; 17];
        for bytes in 0..=200_u32 {
            let mut target = [0xee_u64; 17];
            copy(bytes, |w| source[w], |w, value| target[w] = value);
            let moved = bytes.min(128) as usize;
            let mut expected = [0xee_u64; 17];
            expected[..moved.div_ceil(8)].fill(!0);
            if !moved.is_multiple_of(8) {
                expected[moved / 8] = low_bytes(moved % 8);
            }
            assert_eq!(target, expected, "{bytes}");
        }
    }
}
