//! Keys: what a client shows, and what the operator keeps of it.
//!
//! # Why one round of SHA-256 is enough
//!
//! A slow hash protects passwords, because people choose from few of them and an
//! attacker who has the hash can try them all. The secret of a key is 256 bits
//! from the system's generator: whoever tries a million million of them a second
//! has seen a part in 10^57 of them after the age of the universe, and a hash
//! that were a million times slower would change nothing about that. It would
//! cost every request its time on the CPU, and let strangers spend the host's
//! time by sending keys. The salt keeps equal keys from having equal hashes.
//!
//! A key carries a public part, by which its hash is found in a map. So one
//! comparison decides, it takes the same time wherever the hashes differ, and a
//! key that nobody has is compared with a hash that nothing has.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every key begins with, so that people and scanners know what leaked.
const PREFIX: &str = "nala_";
/// What every stored key begins with: how it is hashed.
const SCHEME: &str = "nala-sha256";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Characters of a whole key.
const KEY_CHARACTERS: usize = PREFIX.len() + 2 * ID_BYTES + 1 + 2 * SECRET_BYTES;

/// The public part of a key. It may be logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A whole key, which only its user may have. It is not shown by `Debug`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// The key as a client sends it. It is told once, to whom it is for.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(not shown)")
    }
}

/// Makes keys.
#[derive(Debug)]
pub struct Key;

impl Key {
    /// A new key, and what the operator keeps of it.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn generate() -> Result<(Secret, StoredKey), NoRandomness> {
        let (mut id, mut secret, mut salt) = ([0; ID_BYTES], [0; SECRET_BYTES], [0; SALT_BYTES]);
        for bytes in [&mut id[..], &mut secret[..], &mut salt[..]] {
            getrandom::fill(bytes).map_err(|error| NoRandomness(error.to_string()))?;
        }
        let text = format!("{PREFIX}{}_{}", hex::encode(id), hex::encode(secret));
        let hash = digest(&salt, &text);
        Ok((Secret(text), StoredKey { id: KeyId(id), salt, hash, expires: None }))
    }
}

/// No key can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes for a key: {0}")]
pub struct NoRandomness(String);

/// What is kept of a key. It is written `nala-sha256:ID:SALT:HASH`, with the
/// parts in hexadecimal; the hash is SHA-256 of the salt's bytes and the key's
/// text. Who has it does not have the key.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredKey {
    id: KeyId,
    salt: [u8; SALT_BYTES],
    hash: [u8; HASH_BYTES],
    expires: Option<SystemTime>,
}

impl StoredKey {
    /// The public part.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// When it ends; None for never. It is not part of the text.
    #[must_use]
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// The same key, ending at a moment or never.
    #[must_use]
    pub fn with_expiry(self, expires: Option<SystemTime>) -> Self {
        Self { expires, ..self }
    }

    /// A key that nothing matches but by finding a collision with zeros.
    const fn nobodys() -> Self {
        Self { id: KeyId([0; ID_BYTES]), salt: [0; SALT_BYTES], hash: [0; HASH_BYTES], expires: None }
    }

    fn matches(&self, text: &str) -> bool {
        digest(&self.salt, text).ct_eq(&self.hash).into()
    }
}

/// The hash is left out, though nobody could do anything with it: logs are no
/// place for it.
impl fmt::Debug for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredKey").field("id", &self.id).field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// The text for the operator's file.
impl fmt::Display for StoredKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}:{}:{}:{}", self.id, hex::encode(self.salt), hex::encode(self.hash))
    }
}

/// Why a text is no stored key. The text is not repeated, since it may be a key
/// that was put where its hash belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidKey {
    /// The key itself stands where its hash belongs.
    #[error("this is a key itself, and whoever reads this file could use it: keep its hash, and make a new key")]
    Secret,
    /// Another scheme, or none.
    #[error("a stored key begins with `{SCHEME}:`")]
    Scheme,
    /// A part is missing, too long, too short or not hexadecimal.
    #[error("a stored key is `{SCHEME}:ID:SALT:HASH` with 16, 32 and 64 hexadecimal digits, and this one's {0} is not")]
    Part(&'static str),
}

impl FromStr for StoredKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        if text.starts_with(PREFIX) {
            return Err(InvalidKey::Secret);
        }
        let mut parts = text.split(':');
        if parts.next() != Some(SCHEME) {
            return Err(InvalidKey::Scheme);
        }
        let id = KeyId(part(parts.next(), "ID")?);
        let salt = part(parts.next(), "SALT")?;
        let hash = part(parts.next(), "HASH")?;
        match parts.next() {
            None => Ok(Self { id, salt, hash, expires: None }),
            Some(_) => Err(InvalidKey::Part("end")),
        }
    }
}

fn part<const N: usize>(text: Option<&str>, name: &'static str) -> Result<[u8; N], InvalidKey> {
    let mut bytes = [0; N];
    hex::decode_to_slice(text.unwrap_or_default(), &mut bytes).map_err(|_| InvalidKey::Part(name))?;
    Ok(bytes)
}

fn digest(salt: &[u8; SALT_BYTES], text: &str) -> [u8; HASH_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(salt);
    hasher.update(text.as_bytes());
    hasher.finalize().into()
}

/// The public part of a text that looks like a key.
fn id_of(text: &str) -> Option<KeyId> {
    if text.len() != KEY_CHARACTERS {
        return None;
    }
    let (id, _) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let mut bytes = [0; ID_BYTES];
    hex::decode_to_slice(id, &mut bytes).ok()?;
    Some(KeyId(bytes))
}

/// Why a key is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// Nobody has it.
    Unknown,
    /// It is somebody's, and has ended.
    Expired,
}

/// Keys, and whose they are.
#[derive(Debug, Clone)]
pub struct KeyRing<T> {
    keys: BTreeMap<KeyId, (StoredKey, T)>,
}

impl<T> Default for KeyRing<T> {
    fn default() -> Self {
        Self { keys: BTreeMap::new() }
    }
}

impl<T> KeyRing<T> {
    /// Adds a key of somebody.
    ///
    /// # Errors
    /// The one who has a key with this public part already.
    pub fn add(&mut self, key: StoredKey, owner: T) -> Result<(), &T> {
        use std::collections::btree_map::Entry;
        match self.keys.entry(key.id) {
            Entry::Vacant(place) => {
                place.insert((key, owner));
                Ok(())
            }
            Entry::Occupied(taken) => Err(&taken.into_mut().1),
        }
    }

    /// Whose key has this public part, which is no proof of having it.
    #[must_use]
    pub fn holder(&self, id: KeyId) -> Option<&T> {
        self.keys.get(&id).map(|(_, owner)| owner)
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whose key this is.
    ///
    /// Every text costs one hash of a key's length and one comparison, whether
    /// somebody has it or not, and however long it is.
    ///
    /// # Errors
    /// Nobody's, or it has ended by `date`. The latter is only told to whom the
    /// key was given.
    pub fn owner(&self, text: &str, date: SystemTime) -> Result<&T, Rejected> {
        let nobody = const { &StoredKey::nobodys() };
        let found = id_of(text).and_then(|id| self.keys.get(&id));
        let stored = found.map_or(nobody, |(stored, _)| stored);
        let same = if text.len() == KEY_CHARACTERS {
            stored.matches(text)
        } else {
            // As much work as for a key, and never the same.
            let blank = "0".repeat(KEY_CHARACTERS);
            nobody.matches(&blank)
        };
        match found {
            Some((stored, owner)) if same => match stored.expires {
                Some(expires) if expires <= date => Err(Rejected::Expired),
                _ => Ok(owner),
            },
            _ => Err(Rejected::Unknown),
        }
    }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
