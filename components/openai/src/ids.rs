//! Names for what is answered.

use nala_sdk::wasi::random::random::get_random_u64;

/// The longest id of a call that clients send back (Open Responses,
/// `FunctionCallItemParam.call_id`), in characters.
const MAX_CALL: usize = 64;

/// Makes names from one number, which is another for each answer.
#[derive(Debug, Clone)]
pub struct Ids {
    seed: u128,
    next: u32,
    /// The calls that are named already.
    calls: Vec<String>,
}

impl Ids {
    /// Names that no other answer has.
    #[must_use]
    pub fn random() -> Self {
        Self::of(u128::from(get_random_u64()) << 64 | u128::from(get_random_u64()))
    }

    /// The names that follow from a number.
    #[must_use]
    pub fn of(seed: u128) -> Self {
        Self { seed, next: 0, calls: Vec::new() }
    }

    /// The answer's: the same each time. `prefix` says of which kind it is.
    #[must_use]
    pub fn answer(&self, prefix: &str) -> String {
        format!("{prefix}{:032x}", self.seed)
    }

    /// The next part's.
    pub fn part(&mut self, prefix: &str) -> String {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        format!("{prefix}{:032x}{number:04x}", self.seed)
    }

    /// A call's: the one that the model gave it, if clients can tell calls apart by
    /// it and send it back.
    pub fn call(&mut self, prefix: &str, own: Option<String>) -> String {
        let usable =
            |id: &String| !id.trim().is_empty() && id.chars().nth(MAX_CALL).is_none() && !self.calls.contains(id);
        let id = own.filter(usable).unwrap_or_else(|| self.part(prefix));
        self.calls.push(id.clone());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_own_id_is_kept_where_it_names_one_call() {
        let mut ids = Ids::of(7);
        assert_eq!(ids.call("call_", Some("abc".to_owned())), "abc");
        for unusable in [Some("abc"), Some(" "), Some("x".repeat(65).as_str()), None] {
            let id = ids.call("call_", unusable.map(str::to_owned));
            assert!(id.starts_with("call_0000") && id.len() <= MAX_CALL, "{unusable:?}: {id}");
        }
        assert_eq!(ids.call("call_", Some("x".repeat(64))), "x".repeat(64));
    }

    #[test]
    fn no_two_names_are_the_same_but_the_answers() {
        let mut ids = Ids::of(u128::MAX);
        let mut all =
            vec![ids.answer("a_"), ids.part("a_"), ids.part("a_"), ids.call("a_", None), ids.call("a_", None)];
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5, "{all:?}");
        assert_eq!(ids.answer("a_"), ids.answer("a_"));
    }
}
