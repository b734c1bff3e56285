//! Randomness as an input: one seed, one sequence.

/// The alphabet of generated names: no vowels, no look-alikes.
const NAME_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A source of uids and name endings (SplitMix64).
#[derive(Clone, Debug)]
pub struct Entropy(u64);

impl Entropy {
    /// Equal seeds yield equal sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The state of the sequence: [`Entropy::new`] continues from here.
    pub(crate) fn state(&self) -> u64 {
        self.0
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A version 4 UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters for `generateName`.
    pub(crate) fn name_ending(&mut self) -> String {
        let pick = |entropy: &mut Self| {
            let at = entropy.next() % NAME_ALPHABET.len() as u64;
            NAME_ALPHABET
                .get(at as usize)
                .map_or('x', |byte| char::from(*byte))
        };
        (0..5).map(|_| pick(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Entropy;

    #[test]
    fn equal_seeds_yield_equal_sequences_of_well_formed_uids() {
        let (mut one, mut two) = (Entropy::new(7), Entropy::new(7));
        for _ in 0..100 {
            let uid = one.uid();
            assert_eq!(uid, two.uid());
            assert_eq!(uid.len(), 36);
            assert_eq!(uid.as_bytes()[14], b'4');
            assert!(b"89ab".contains(&uid.as_bytes()[19]));
        }
        assert_ne!(Entropy::new(1).name_ending(), Entropy::new(2).name_ending());
    }
}
