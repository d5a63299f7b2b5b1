//! Shuffle sharding: each flow gets a small hand of the queues, dealt by its hash. Two flows share some queues of their
//! hands, but hardly ever all, so a flow that fills its own queues leaves others a way past it.

use sha2::{Digest, Sha256};

/// Hands are no larger: each card is compared with those dealt before it.
pub const MAX_HAND: usize = 32;
/// The most bits of a hash that dealing may use up; what is left keeps the last cards even.
const MAX_BITS: f64 = 60.0;

/// The hash of a flow: of the schema's name and what tells flows of one schema apart.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(schema.as_bytes());
    hash.update([0]);
    hash.update(distinguisher.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// How many bits of a hash it takes to deal `hand` of `deck` cards.
pub fn entropy_bits(deck: u32, hand: u32) -> f64 {
    (0..hand.min(deck)).map(|dealt| f64::from(deck - dealt).log2()).sum()
}

/// Whether a hash has enough bits for such hands.
pub fn has_enough_bits(deck: u32, hand: u32) -> bool {
    entropy_bits(deck, hand) <= MAX_BITS
}

/// Deals hands of `hand` different cards of `deck`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dealer {
    deck: usize,
    hand: usize,
}

impl Dealer {
    /// At least one card, at most the deck and [`MAX_HAND`].
    pub fn new(deck: usize, hand: usize) -> Dealer {
        let deck = deck.max(1);
        Dealer {
            deck,
            hand: hand.clamp(1, deck.min(MAX_HAND)),
        }
    }

    pub fn hand(&self) -> usize {
        self.hand
    }

    /// The hand of a hash, into the front of `cards`; returns that part.
    pub fn deal<'a>(&self, hash: u64, cards: &'a mut [usize; MAX_HAND]) -> &'a [usize] {
        let mut rest = hash;
        for dealt in 0..self.hand {
            let left = (self.deck - dealt) as u64;
            // The remainder is below the deck's size.
            let mut card = usize::try_from(rest % left).unwrap_or(0);
            rest /= left;
            // The card's place among those that are left becomes its place in the whole deck.
            let (before, _) = cards.split_at_mut(dealt);
            before.sort_unstable();
            for earlier in before.iter() {
                if card >= *earlier {
                    card += 1;
                }
            }
            if let Some(place) = cards.get_mut(dealt) {
                *place = card;
            }
        }
        cards.get(..self.hand).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn hand(dealer: Dealer, n: usize) -> Vec<usize> {
        let mut cards = [0; MAX_HAND];
        dealer
            .deal(flow_hash("schema", &format!("user-{n}")), &mut cards)
            .to_vec()
    }

    #[test]
    fn hands_are_of_different_cards_of_the_deck() {
        for (deck, size) in [(1, 1), (1, 5), (6, 6), (16, 4), (64, 8), (128, 6), (1000, 1)] {
            let dealer = Dealer::new(deck, size);
            for n in 0..200 {
                let cards = hand(dealer, n);
                let distinct: HashSet<_> = cards.iter().collect();
                assert_eq!((cards.len(), distinct.len()), (size.min(deck), size.min(deck)));
                assert!(cards.iter().all(|card| *card < deck), "{cards:?}");
            }
        }
    }

    #[test]
    fn every_card_is_dealt_about_as_often() {
        let dealer = Dealer::new(64, 6);
        let mut seen = [0u32; 64];
        for n in 0..6400 {
            hand(dealer, n).iter().for_each(|card| seen[*card] += 1);
        }
        // 600 each on average; the binomial deviation is below 24.
        let (least, most) = (seen.iter().min().unwrap(), seen.iter().max().unwrap());
        assert!(
            (480..=720).contains(least) && (480..=720).contains(most),
            "{least} {most}"
        );
    }

    /// What shuffle sharding is for: one large flow hardly ever has all queues of a small one.
    #[test]
    fn few_flows_lose_all_their_queues_to_another() {
        let dealer = Dealer::new(128, 6);
        let large: HashSet<_> = (0..4).flat_map(|n| hand(dealer, n)).collect();
        let covered = (100..10_100).filter(|n| hand(dealer, *n).iter().all(|card| large.contains(card)));
        assert!(covered.count() <= 3);
    }

    #[test]
    fn hands_that_need_more_bits_than_a_hash_has_are_known() {
        for (deck, hand, fits) in [
            (64, 8, true),
            (128, 6, true),
            (1024, 6, true),
            (1024, 7, false),
            (10_000, 8, false),
        ] {
            assert_eq!(has_enough_bits(deck, hand), fits, "{deck} {hand}");
        }
    }
}
