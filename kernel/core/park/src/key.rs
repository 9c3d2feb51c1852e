//! What threads wait at.

/// Identities are numbers below this; the bit above tells the two kinds apart.
const SHARED: u64 = 1 << 63;

/// A place threads park at. Two threads meet if their keys are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Identity of the address space or, with the top bit, of the memory object.
    pub(crate) identity: u64,
    /// Address or offset.
    pub(crate) place: u64,
}

impl Key {
    /// An address in one address space. Identities are never reused, and below 2⁶³.
    #[inline]
    pub const fn private(address_space: u64, address: u64) -> Self {
        Self { identity: address_space & !SHARED, place: address }
    }

    /// An offset in a memory object that several address spaces may map.
    #[inline]
    pub const fn shared(memory_object: u64, offset: u64) -> Self {
        Self { identity: memory_object | SHARED, place: offset }
    }
}

/// Spreads keys over buckets, in a way that users cannot foresee.
///
/// Two rounds of a folded multiplication with secret factors: without them, addresses that
/// share a bucket cannot be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Hash {
    secret: [u64; 2],
}

impl Hash {
    /// A hash with random `secret` words.
    pub const fn new(secret: [u64; 2]) -> Self {
        // An even factor would lose bits.
        Self { secret: [secret[0] | 1, secret[1] | 1] }
    }

    /// The bucket of `key` among `1 << bits`.
    #[inline]
    pub const fn bucket(&self, key: Key, bits: u32) -> usize {
        let mixed = fold(key.place ^ self.secret[1], self.secret[0]);
        let mixed = fold(mixed ^ key.identity, self.secret[1]);
        if bits == 0 { 0 } else { (mixed >> (64 - bits)) as usize }
    }
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec;

    #[test]
    fn keys_of_two_kinds_never_meet() {
        assert_ne!(Key::private(5, 64), Key::shared(5, 64));
        assert_ne!(Key::private(5, 64), Key::private(6, 64));
        assert_ne!(Key::shared(5, 64), Key::shared(5, 68));
    }

    #[test]
    fn regular_addresses_spread() {
        let hash = Hash::new([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]);
        for stride in [4u64, 64, 4096, 1 << 20] {
            let mut count = vec![0u32; 256];
            for n in 0..4096u64 {
                count[hash.bucket(Key::private(1, 0x40_0000 + n * stride), 8)] += 1;
            }
            let fullest = count.iter().max().unwrap();
            assert!(*fullest <= 48, "stride {stride}: {fullest} of a mean of 16");
        }
        assert_eq!(hash.bucket(Key::private(1, 1), 0), 0);
    }
}
