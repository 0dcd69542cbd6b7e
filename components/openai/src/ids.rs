//! Names for what is answered.

use std::fmt::Write;

use nala_sdk::wasi::random::random::get_random_u64;

/// Makes ids: a kind, a text that is the answer's own, and a number that counts.
#[derive(Debug)]
pub struct Ids {
    own: String,
    next: u32,
}

impl Ids {
    /// Ids that no other answer has.
    #[must_use]
    pub fn random() -> Self {
        Self::of(&format!("{:016x}{:016x}", get_random_u64(), get_random_u64()))
    }

    /// Ids of an answer that is known by `own`.
    #[must_use]
    pub fn of(own: &str) -> Self {
        Self { own: own.to_owned(), next: 0 }
    }

    /// The id of the answer itself: the same each time.
    #[must_use]
    pub fn answer(&self, kind: &str) -> String {
        format!("{kind}{}", self.own)
    }

    /// Another id, for a part of the answer.
    pub fn part(&mut self, kind: &str) -> String {
        let mut id = self.answer(kind);
        // A string takes all that is written.
        let _ = write!(id, "{:02x}", self.next);
        self.next = self.next.wrapping_add(1);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_and_the_answer_stays_the_same() {
        let mut ids = Ids::of("7");
        assert_eq!(
            (ids.answer("a_"), ids.part("b_"), ids.part("b_"), ids.answer("a_")),
            ("a_7".to_owned(), "b_700".to_owned(), "b_701".to_owned(), "a_7".to_owned())
        );
    }
}
