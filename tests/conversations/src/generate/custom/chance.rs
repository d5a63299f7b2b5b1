//! Chance that is the same for the same seed (splitmix64).

/// A source of choices.
pub struct Chance(u64);

impl Chance {
    pub fn of(seed: u64, number: u64) -> Chance {
        let seed = seed.wrapping_mul(0x2545_f491_4f6c_dd1d);
        Chance(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number of these.
    pub fn within(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of some.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// One of some, as a copy.
    pub fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Some of all, in their order, at least one.
    pub fn some<T: Clone>(&mut self, of: &[T]) -> Vec<T> {
        let always = self.below(of.len());
        let mut chosen = Vec::new();
        for (place, one) in of.iter().enumerate() {
            if place == always || self.percent(50) {
                chosen.push(one.clone());
            }
        }
        chosen
    }
}
