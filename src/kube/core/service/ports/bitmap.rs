//! Bitmap of the ports of a range, as the API stores it: a number of which each bit says that a port is taken, the
//! lowest that of the first port; its bytes, the highest first, without those that are zero before.

use keelson_machinery::env::Entropy;

use super::{Batch, Fault, Outcome, PortRange, Want};

/// The lower part of a range is left to services that ask for a port: a thirty-second of it, within these bounds.
const STATIC_SHARE: usize = 32;
const STATIC_MIN: usize = 16;
const STATIC_MAX: usize = 128;

/// Which ports of a range are taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bitmap {
    range: PortRange,
    /// By 64 ports, the first ones lowest.
    words: Vec<u64>,
}

impl Bitmap {
    /// Nothing is taken.
    pub fn new(range: PortRange) -> Bitmap {
        let mut bitmap = Bitmap {
            range,
            words: Vec::new(),
        };
        bitmap.words = vec![0; bitmap.len().div_ceil(64)];
        bitmap
    }

    /// As it was stored. What is beyond the range is left out.
    pub fn from_bytes(range: PortRange, bytes: &[u8]) -> Bitmap {
        let mut bitmap = Bitmap::new(range);
        for (place, byte) in bytes.iter().rev().enumerate() {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                bitmap.set(place * 8 + bit, true);
            }
        }
        bitmap
    }

    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.words.iter().rev().flat_map(|word| word.to_be_bytes());
        bytes.skip_while(|byte| *byte == 0).collect()
    }

    /// How many ports the range has.
    fn len(&self) -> usize {
        usize::from(self.range.last - self.range.first) + 1
    }

    fn place(&self, port: i32) -> Option<usize> {
        let port = u16::try_from(port).ok()?;
        (self.range.first..=self.range.last)
            .contains(&port)
            .then(|| usize::from(port - self.range.first))
    }

    fn is_set(&self, place: usize) -> bool {
        self.words
            .get(place / 64)
            .is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    fn set(&mut self, place: usize, taken: bool) {
        if place >= self.len() {
            return;
        }
        if let Some(word) = self.words.get_mut(place / 64) {
            let bit = 1 << (place % 64);
            *word = if taken { *word | bit } else { *word & !bit };
        }
    }

    /// Whether a port is taken; one that is not of the range is not.
    pub fn has(&self, port: i32) -> bool {
        self.place(port).is_some_and(|place| self.is_set(place))
    }

    /// The ports that are taken.
    pub fn taken(&self) -> impl Iterator<Item = u16> {
        let taken = (0..self.len()).filter(|place| self.is_set(*place));
        taken.filter_map(|place| u16::try_from(place).ok()?.checked_add(self.range.first))
    }

    /// Takes a port.
    ///
    /// # Errors
    /// It is taken already, or not of the range.
    pub fn take(&mut self, port: i32) -> Result<u16, Fault> {
        let place = self.place(port).ok_or(Fault::NotInRange(self.range))?;
        if self.is_set(place) {
            return Err(Fault::Taken);
        }
        self.set(place, true);
        Ok(self.port(place))
    }

    /// Takes a port that is free, from a random one on: in the upper part, then in the part that is reserved.
    ///
    /// # Errors
    /// All are taken.
    pub fn take_any(&mut self, entropy: &dyn Entropy) -> Result<u16, Fault> {
        let reserved = match self.len() {
            ..=STATIC_MIN => 0,
            len => (len / STATIC_SHARE).clamp(STATIC_MIN, STATIC_MAX),
        };
        for (first, end) in [(reserved, self.len()), (0, reserved)] {
            if first == end {
                continue;
            }
            let mut random = [0; 8];
            entropy.fill(&mut random);
            let start = first + usize::from_le_bytes(random) % (end - first);
            let free = (start..end).chain(first..start).find(|place| !self.is_set(*place));
            if let Some(place) = free {
                self.set(place, true);
                return Ok(self.port(place));
            }
        }
        Err(Fault::Full)
    }

    fn port(&self, place: usize) -> u16 {
        u16::try_from(place)
            .unwrap_or(u16::MAX)
            .saturating_add(self.range.first)
    }

    /// Frees a port; one that is not taken stays free.
    pub fn free(&mut self, port: i32) {
        if let Some(place) = self.place(port) {
            self.set(place, false);
        }
    }

    /// Does all of a batch, or nothing.
    pub fn apply(&mut self, batch: &Batch, entropy: &dyn Entropy) -> Outcome {
        let before = self.words.clone();
        let mut taken = Vec::with_capacity(batch.take.len());
        for (place, want) in batch.take.iter().enumerate() {
            let port = match want {
                Want::This(port) => self.take(*port),
                Want::Any => self.take_any(entropy),
            };
            match port {
                Ok(port) => taken.push(port),
                Err(fault) => {
                    self.words = before;
                    return Err((place, fault));
                }
            }
        }
        batch.free.iter().for_each(|port| self.free(*port));
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use keelson_base::env::SystemEntropy;

    use super::*;

    const RANGE: PortRange = PortRange {
        first: 30_000,
        last: 30_099,
    };

    /// As a number of Go's `math/big`: shifted left by each port, written without zeros before.
    #[test]
    fn bytes_are_those_of_the_api() {
        for (ports, bytes) in [
            (&[][..], &[][..]),
            (&[30_000], &[1]),
            (&[30_007], &[0x80]),
            (&[30_008], &[1, 0]),
            (&[30_000, 30_009, 30_064], &[1, 0, 0, 0, 0, 0, 0, 2, 1]),
        ] {
            let mut bitmap = Bitmap::new(RANGE);
            for port in ports {
                bitmap.take(*port).unwrap();
            }
            assert_eq!(bitmap.to_bytes(), bytes, "{ports:?}");
            assert_eq!(Bitmap::from_bytes(RANGE, bytes), bitmap);
            assert_eq!(bitmap.taken().map(i32::from).collect::<Vec<_>>(), ports);
        }
        let beyond = Bitmap::from_bytes(RANGE, &[0xff; 100]);
        assert_eq!(beyond.taken().count(), 100);
    }

    #[test]
    fn ports_are_taken_once() {
        let mut bitmap = Bitmap::new(RANGE);
        assert_eq!(bitmap.take(30_005), Ok(30_005));
        assert_eq!(bitmap.take(30_005), Err(Fault::Taken));
        assert!(bitmap.has(30_005) && !bitmap.has(30_006) && !bitmap.has(80));
        for port in [29_999, 30_100, 0, -1, 70_000] {
            assert_eq!(bitmap.take(port), Err(Fault::NotInRange(RANGE)));
        }
        bitmap.free(30_005);
        bitmap.free(80);
        assert_eq!(bitmap, Bitmap::new(RANGE));
    }

    #[test]
    fn the_lower_part_is_used_last() {
        let mut bitmap = Bitmap::new(RANGE);
        let any: Vec<u16> = (0..100).map(|_| bitmap.take_any(&SystemEntropy).unwrap()).collect();
        assert!(any.iter().take(84).all(|port| *port >= 30_016));
        assert!(any.iter().skip(84).all(|port| *port < 30_016));
        assert_eq!(bitmap.take_any(&SystemEntropy), Err(Fault::Full));
        let one = PortRange {
            first: 30_000,
            last: 30_000,
        };
        assert_eq!(Bitmap::new(one).take_any(&SystemEntropy), Ok(30_000));
    }

    #[test]
    fn a_batch_is_done_as_a_whole() {
        let mut bitmap = Bitmap::new(RANGE);
        let batch = |take: &[Want], free: &[i32]| Batch {
            take: take.to_vec(),
            free: free.to_vec(),
        };
        let first = batch(&[Want::This(30_001), Want::This(30_002)], &[]);
        assert_eq!(bitmap.apply(&first, &SystemEntropy), Ok(vec![30_001, 30_002]));
        let before = bitmap.clone();
        let failing = batch(&[Want::Any, Want::This(30_002), Want::This(30_003)], &[30_001]);
        assert_eq!(bitmap.apply(&failing, &SystemEntropy), Err((1, Fault::Taken)));
        assert_eq!(bitmap, before);
        let moving = batch(&[Want::This(30_003)], &[30_001]);
        assert_eq!(bitmap.apply(&moving, &SystemEntropy), Ok(vec![30_003]));
        assert_eq!(bitmap.taken().collect::<Vec<_>>(), [30_002, 30_003]);
    }
}
