//! Random choices that a seed repeats.

/// A stream of them (SplitMix64).
pub struct Random(u64);

impl Random {
    /// The stream of this number.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Different ones of these, at least one and at most `most`, in their order.
    pub fn some<T: Copy>(&mut self, of: &[T], most: usize) -> Vec<T> {
        let wanted = 1 + self.below(most.min(of.len()));
        let mut left = of.len();
        let mut taken = Vec::new();
        for item in of {
            if self.below(left) < wanted - taken.len() {
                taken.push(*item);
            }
            left -= 1;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_those_of_their_seed() {
        let mut one = Random::new(1, 2);
        let mut same = Random::new(1, 2);
        let mut other = Random::new(2, 2);
        let draw = |random: &mut Random| -> Vec<usize> { (0..20).map(|_| random.below(100)).collect() };
        let drawn = draw(&mut one);
        assert_eq!(drawn, draw(&mut same));
        assert_ne!(drawn, draw(&mut other));
        for _ in 0..100 {
            let some = one.some(&[1, 2, 3, 4], 3);
            assert!((1..=3).contains(&some.len()) && some.is_sorted(), "{some:?}");
        }
    }
}
