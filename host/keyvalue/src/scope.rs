//! Whose data it is, and the bytes it is stored behind.

use std::sync::Arc;

/// The most bytes of the name of a tenant, an application or a store: one byte
/// holds its length.
pub const NAME_BYTES: usize = 255;

/// A tenant and an application of it. The host knows both; no guest names them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    tenant: Name,
    application: Name,
}

impl Scope {
    /// The scope of an application.
    ///
    /// # Errors
    /// A name is empty, longer than [`NAME_BYTES`] or has control characters.
    pub fn new(tenant: &str, application: &str) -> Result<Self, InvalidName> {
        Ok(Self { tenant: Name::new("tenant", tenant)?, application: Name::new("application", application)? })
    }

    /// The tenant's name.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.tenant.0
    }

    /// The application's name.
    #[must_use]
    pub fn application(&self) -> &str {
        &self.application.0
    }
}

/// A name that nothing can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has no characters.
    #[error("the name of the {what} is empty: give it one")]
    Empty {
        /// What is to be named.
        what: &'static str,
    },
    /// It is too long.
    #[error("the name of the {what} has {bytes} bytes: give it at most {NAME_BYTES}")]
    TooLong {
        /// What is to be named.
        what: &'static str,
        /// How many bytes it has.
        bytes: usize,
    },
    /// It could not be shown to anybody.
    #[error("the name {name:?} of the {what} has a control character: leave it out")]
    Control {
        /// What is to be named.
        what: &'static str,
        /// The name.
        name: String,
    },
}

/// A name that was checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(Arc<str>);

impl Name {
    pub(crate) fn new(what: &'static str, name: &str) -> Result<Self, InvalidName> {
        if name.is_empty() {
            return Err(InvalidName::Empty { what });
        }
        if name.len() > NAME_BYTES {
            return Err(InvalidName::TooLong { what, bytes: name.len() });
        }
        if name.chars().any(char::is_control) {
            return Err(InvalidName::Control { what, name: name.to_owned() });
        }
        Ok(Self(name.into()))
    }
}

/// The beginning of keys in the file: the names they are stored under, each behind
/// its length. None is the beginning of another of as many names, whatever is in
/// them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix(Vec<u8>);

impl Prefix {
    pub(crate) fn of_tenant(tenant: &Name) -> Self {
        Self::of(&[tenant])
    }

    pub(crate) fn of_application(scope: &Scope) -> Self {
        Self::of(&[&scope.tenant, &scope.application])
    }

    fn of(names: &[&Name]) -> Self {
        let mut bytes = Vec::new();
        for name in names {
            // A name has at most 255 bytes.
            bytes.push(name.0.len() as u8);
            bytes.extend_from_slice(name.0.as_bytes());
        }
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key in the file of something behind this.
    pub(crate) fn key(&self, key: &str) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() + key.len());
        bytes.extend_from_slice(&self.0);
        bytes.extend_from_slice(key.as_bytes());
        bytes
    }

    /// The first bytes that come after all that begin with these. None if there
    /// are none, which names in UTF-8 never lead to.
    pub(crate) fn end(&self) -> Option<Vec<u8>> {
        let mut bytes = self.0.clone();
        while let Some(last) = bytes.pop() {
            if let Some(next) = last.checked_add(1) {
                bytes.push(next);
                return Some(bytes);
            }
        }
        None
    }
}

/// A store's place: whose turn its writes take, and where its data and its counts
/// are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Whose turns writes take.
    pub(crate) tenant: Arc<str>,
    pub(crate) tenant_prefix: Prefix,
    pub(crate) store_prefix: Prefix,
    /// What all data of the tenant may take, if it is not what everybody's may.
    pub(crate) tenant_bytes: Option<u64>,
}

impl Place {
    pub(crate) fn new(scope: &Scope, store: &Name) -> Self {
        Self {
            tenant: Arc::clone(&scope.tenant.0),
            tenant_prefix: Prefix::of_tenant(&scope.tenant),
            store_prefix: Prefix::of(&[&scope.tenant, &scope.application, store]),
            tenant_bytes: None,
        }
    }
}

/// The prefixes of the tenant and the store of a key in the file. None if it is
/// not one that this crate wrote.
pub(crate) fn prefixes(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let name_end = |start: usize| Some(start + 1 + usize::from(*key.get(start)?));
    let tenant = name_end(0)?;
    let store = name_end(name_end(tenant)?)?;
    Some((key.get(..tenant)?, key.get(..store)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(names: &[String; 3]) -> Place {
        Place::new(&Scope::new(&names[0], &names[1]).unwrap(), &Name::new("store", &names[2]).unwrap())
    }

    #[test]
    fn names_are_checked() {
        assert_eq!(Scope::new("", "a"), Err(InvalidName::Empty { what: "tenant" }));
        assert!(matches!(Scope::new("a", &"x".repeat(256)), Err(InvalidName::TooLong { bytes: 256, .. })));
        assert!(matches!(Scope::new("a", "b\0"), Err(InvalidName::Control { .. })));
        assert!(Scope::new(&"x".repeat(255), "ünï / \u{10FFFF}").is_ok());
    }

    fn name() -> impl Strategy<Value = String> {
        // Short names of few characters are the ones that could be confused.
        prop_oneof!["[a/:.]{1,4}", "\\PC{1,20}", Just("a".repeat(97)), Just("\u{10FFFF}".repeat(63))]
    }

    fn names() -> impl Strategy<Value = [String; 3]> {
        [name(), name(), name()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_names_and_keys_lead_to_the_same_place(a in names(), b in names(), key in "\\PC{0,6}", other in "\\PC{0,6}") {
            let (one, two) = (place(&a), place(&b));
            let (stored, elsewhere) = (one.store_prefix.key(&key), two.store_prefix.key(&other));
            prop_assert_eq!(stored == elsewhere, (&a, &key) == (&b, &other));
            // What a store, an application and a tenant holds is a range that has
            // nothing of another's.
            let within = |key: &[u8], prefix: &Prefix| prefix.bytes() <= key && key < prefix.end().unwrap().as_slice();
            prop_assert_eq!(within(&elsewhere, &one.store_prefix), a == b);
            prop_assert_eq!(within(&elsewhere, &one.tenant_prefix), a[0] == b[0]);
            let application = Prefix::of_application(&Scope::new(&a[0], &a[1]).unwrap());
            prop_assert_eq!(within(&elsewhere, &application), a[..2] == b[..2]);
            prop_assert_eq!(prefixes(&stored), Some((one.tenant_prefix.bytes(), one.store_prefix.bytes())));
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some((tenant, store)) = prefixes(&bytes) {
                prop_assert!(store.starts_with(tenant) && bytes.starts_with(store));
            }
        }
    }
}
