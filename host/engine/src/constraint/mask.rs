//! Sets of tokens.

use crate::backend::Token;

/// A set of tokens: which ones may come next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenMask {
    /// Bit n % 32 of word n / 32 stands for token n.
    words: Vec<u32>,
    allowed: usize,
}

impl TokenMask {
    /// No token of a vocabulary of `vocab` entries.
    pub(super) fn none(vocab: u32) -> Self {
        Self { words: vec![0; vocab.div_ceil(32) as usize], allowed: 0 }
    }

    /// Adds a token of the vocabulary.
    pub(super) fn add(&mut self, token: Token) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            let bit = 1 << (token % 32);
            self.allowed += usize::from(*word & bit == 0);
            *word |= bit;
        }
    }

    /// Becomes what is both in `words` and in `other`.
    pub(super) fn set_to_common(&mut self, words: &[u32], other: &Self) {
        let common = words.iter().chain(std::iter::repeat(&0)).zip(&other.words);
        self.allowed = 0;
        for (word, (a, b)) in self.words.iter_mut().zip(common) {
            *word = a & b;
            self.allowed += word.count_ones() as usize;
        }
    }

    /// Forbids all tokens.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.allowed = 0;
    }

    /// Whether a token may come next. Tokens outside the vocabulary may not.
    #[must_use]
    pub fn allows(&self, token: Token) -> bool {
        self.words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// How many tokens may come next.
    #[must_use]
    pub fn allowed(&self) -> usize {
        self.allowed
    }

    /// The tokens that may come next, in ascending order.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        (0..).zip(&self.words).flat_map(|(at, &word)| {
            // Clears the lowest bit each time.
            let rest = std::iter::successors(Some(word), |&word| Some(word & word.wrapping_sub(1)));
            rest.take_while(|&word| word != 0).map(move |word| at * 32 + word.trailing_zeros())
        })
    }

    /// The set as packed bits: bit n % 32 of word n / 32 stands for token n. Bits
    /// past the vocabulary are 0.
    #[must_use]
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Sets the logits of all other tokens to negative infinity. Logits past the
    /// vocabulary count as other tokens.
    pub fn apply(&self, logits: &mut [f32]) {
        let words = self.words.iter().copied().chain(std::iter::repeat(0));
        for (chunk, word) in logits.chunks_mut(32).zip(words) {
            if word == u32::MAX {
                continue;
            }
            for (bit, logit) in chunk.iter_mut().enumerate() {
                if word >> bit & 1 == 0 {
                    *logit = f32::NEG_INFINITY;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_knows_its_tokens() {
        let mut all = TokenMask::none(70);
        (0..70).for_each(|token| all.add(token));
        assert_eq!(all.allowed(), 70);
        let mut mask = TokenMask::none(70);
        mask.set_to_common(&[1 << 3 | 1 << 31, 1, 0xff], &all);
        assert_eq!(mask.tokens().collect::<Vec<_>>(), [3, 31, 32, 64, 65, 66, 67, 68, 69]);
        assert_eq!(mask.allowed(), 9);
        assert!(mask.allows(31) && !mask.allows(30) && !mask.allows(70) && !mask.allows(u32::MAX));
        let mut logits = vec![1.0; 80];
        mask.apply(&mut logits);
        let left: Vec<usize> = logits.iter().enumerate().filter(|(_, l)| **l == 1.0).map(|(n, _)| n).collect();
        assert_eq!(left, [3, 31, 32, 64, 65, 66, 67, 68, 69]);
        mask.clear();
        assert_eq!((mask.allowed(), mask.tokens().count()), (0, 0));
    }
}
