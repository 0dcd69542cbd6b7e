//! Names of tenants and applications.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// Characters at most, as in a label of a host name.
const LONGEST: usize = 63;

/// A name that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` cannot be {role}: write 1 to {LONGEST} of the characters a-z, 0-9 and `-`, with a letter or a digit at \
     both ends"
)]
pub struct InvalidName {
    shown: String,
    role: &'static str,
}

/// Checks by the rule for labels of host names (RFC 1123, section 2.1), in
/// lower case: such a name is also a safe name of a folder, on file systems
/// that do not tell cases apart as well, and can become part of an address.
fn check(text: &str, role: &'static str) -> Result<(), InvalidName> {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let good = bytes.len() <= LONGEST
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric);
    if good {
        return Ok(());
    }
    // A long text would only hide what is wrong with it.
    let shown = text.chars().take(LONGEST + 1).flat_map(char::escape_debug).collect();
    Err(InvalidName { shown, role })
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $role:literal) => {
        $(#[$doc])*
        ///
        /// Of 1 to 63 of the characters a-z, 0-9 and `-`, with a letter or a
        /// digit at both ends.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $type(String);

        impl $type {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $type {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                check(text, $role).map(|()| Self(text.to_owned()))
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

name!(
    /// A tenant's name.
    TenantName,
    "the name of a tenant"
);
name!(
    /// An application's name, one of its tenant's.
    AppName,
    "the name of an application"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_host_names_are_names() {
        for name in ["a", "7", "a-b", "a--b", "0a9", &"x".repeat(63)] {
            assert_eq!(name.parse::<TenantName>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_could_leave_a_folder_or_name_another_is_refused() {
        let bad = ["", ".", "..", "a/b", "a\\b", "../a", "-a", "a-", "A", "aé", "a b", "a\0", "a.b", "a_b", "con\n"];
        for name in bad.iter().copied().chain([&*"x".repeat(64)]) {
            assert!(name.parse::<AppName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_error_shows_what_was_given_and_the_rule() {
        let error = "../\n".parse::<AppName>().unwrap_err().to_string();
        assert!(error.contains("`../\\n` cannot be the name of an application: write 1 to 63"), "{error}");
    }
}
