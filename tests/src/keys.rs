//! Keys of tenants and operators.

use nala_tenant::Key;

/// A new key: what its owner sends, and what stands in the file.
pub fn key() -> (String, String) {
    let (secret, stored) = Key::generate().unwrap();
    (secret.expose().to_owned(), stored.to_string())
}
