//! The names of a response and its items.

/// The longest id of a call that clients send back (Open Responses,
/// `FunctionCallItemParam.call_id`), in characters.
const MAX_CALL_ID: usize = 64;

/// Makes names from one number, which must be another for each response.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    seed: u128,
    next: u32,
    /// The calls that are named already.
    calls: Vec<String>,
}

impl Ids {
    pub(super) fn new(seed: u128) -> Self {
        Self { seed, next: 0, calls: Vec::new() }
    }

    /// The response's.
    pub(super) fn response(&self) -> String {
        format!("resp_{:032x}", self.seed)
    }

    /// The next item's. `prefix` says of which kind it is.
    pub(super) fn item(&mut self, prefix: &str) -> String {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        format!("{prefix}_{:032x}{number:04x}", self.seed)
    }

    /// A call's: the one that the model gave it, if clients can tell calls apart by
    /// it and send it back.
    pub(super) fn call(&mut self, own: Option<String>) -> String {
        let usable =
            |id: &String| !id.trim().is_empty() && id.chars().nth(MAX_CALL_ID).is_none() && !self.calls.contains(id);
        let id = own.filter(usable).unwrap_or_else(|| self.item("call"));
        self.calls.push(id.clone());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_own_id_is_kept_where_it_names_one_call() {
        let mut ids = Ids::new(7);
        assert_eq!(ids.call(Some("abc".to_owned())), "abc");
        for unusable in [Some("abc"), Some(" "), Some("x".repeat(65).as_str()), None] {
            let id = ids.call(unusable.map(str::to_owned));
            assert!(id.starts_with("call_0000") && id.len() <= MAX_CALL_ID, "{unusable:?}: {id}");
        }
        assert_eq!(ids.call(Some("x".repeat(64))), "x".repeat(64));
    }

    #[test]
    fn no_two_names_are_the_same() {
        let mut ids = Ids::new(u128::MAX);
        let mut all = vec![ids.response(), ids.item("msg"), ids.item("msg"), ids.call(None), ids.call(None)];
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5, "{all:?}");
    }
}
