use std::time::Duration;

use proptest::prelude::*;

use super::*;

const DATE: SystemTime = SystemTime::UNIX_EPOCH;

fn ring(keys: &[(&StoredKey, u8)]) -> KeyRing<u8> {
    let mut ring = KeyRing::default();
    for (key, owner) in keys {
        ring.add((*key).clone(), *owner).unwrap();
    }
    ring
}

#[test]
fn a_key_is_its_owners_and_nobody_elses() {
    let (first, stored_first) = Key::generate().unwrap();
    let (second, stored_second) = Key::generate().unwrap();
    let ring = ring(&[(&stored_first, 1), (&stored_second, 2)]);
    assert_eq!(ring.owner(first.expose(), DATE), Ok(&1));
    assert_eq!(ring.owner(second.expose(), DATE), Ok(&2));
    let (third, _) = Key::generate().unwrap();
    assert_eq!(ring.owner(third.expose(), DATE), Err(Rejected::Unknown));
    // The public part of one with the secret of the other.
    let mixed = [&first.expose()[..22], &second.expose()[22..]].concat();
    assert_eq!(ring.owner(&mixed, DATE), Err(Rejected::Unknown));
}

#[test]
fn each_character_of_a_key_counts_and_so_does_its_length() {
    let (secret, stored) = Key::generate().unwrap();
    let ring = ring(&[(&stored, 1)]);
    let text = secret.expose();
    assert_eq!(text.len(), KEY_CHARACTERS);
    for at in 0..text.len() {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        let other = String::from_utf8(bytes).unwrap();
        assert_eq!(ring.owner(&other, DATE), Err(Rejected::Unknown), "{at}");
        assert_eq!(ring.owner(&text[..at], DATE), Err(Rejected::Unknown), "{at}");
    }
    assert_eq!(ring.owner(&text.to_uppercase(), DATE), Err(Rejected::Unknown));
    assert_eq!(ring.owner(&format!("{text}0"), DATE), Err(Rejected::Unknown));
    assert_eq!(ring.owner("", DATE), Err(Rejected::Unknown));
    // Nor is a stored key a key.
    assert_eq!(ring.owner(&stored.to_string(), DATE), Err(Rejected::Unknown));
}

#[test]
fn a_key_ends_at_its_moment_and_only_its_user_is_told() {
    let (secret, stored) = Key::generate().unwrap();
    let end = DATE + Duration::from_secs(60);
    let ring = ring(&[(&stored.with_expiry(Some(end)), 1)]);
    assert_eq!(ring.owner(secret.expose(), end - Duration::from_nanos(1)), Ok(&1));
    assert_eq!(ring.owner(secret.expose(), end), Err(Rejected::Expired));
    let guess = format!("{}{}", &secret.expose()[..22], "0".repeat(64));
    assert_eq!(ring.owner(&guess, end), Err(Rejected::Unknown));
}

#[test]
fn neither_a_key_nor_its_hash_is_shown() {
    let (secret, stored) = Key::generate().unwrap();
    let text = format!("{secret:?} {stored:?} {:?}", ring(&[(&stored, 1)]));
    assert!(!text.contains(secret.expose()) && !text.contains(&secret.expose()[22..]), "{text}");
    let hash = hex::encode(stored.hash);
    assert!(!text.contains(&hash) && !text.contains(&format!("{:?}", stored.hash)), "{text}");
}

#[test]
fn a_stored_key_is_read_as_it_was_written() {
    let (_, stored) = Key::generate().unwrap();
    assert_eq!(stored.to_string().parse(), Ok(stored.clone()));
    let text = stored.to_string();
    for (wrong, error) in [
        (text.replace("sha256", "md5"), InvalidKey::Scheme),
        (text.replace(&stored.id.to_string(), "12"), InvalidKey::Part("ID")),
        (text.replace(&hex::encode(stored.salt), ""), InvalidKey::Part("SALT")),
        (text[..text.len() - 1].to_owned(), InvalidKey::Part("HASH")),
        (format!("{text}:1"), InvalidKey::Part("end")),
    ] {
        assert_eq!(wrong.parse::<StoredKey>(), Err(error), "{wrong}");
    }
    let (secret, _) = Key::generate().unwrap();
    assert_eq!(secret.expose().parse::<StoredKey>(), Err(InvalidKey::Secret));
}

#[test]
fn the_hash_is_what_the_documentation_says() {
    // printf '\0\1…\17nala_…' | sha256sum, by another program.
    let salt: [u8; SALT_BYTES] = std::array::from_fn(|at| u8::try_from(at).unwrap());
    assert_eq!(
        hex::encode(digest(&salt, "nala_0011223344556677_key")),
        "8f3153c8ec87832a206571b289483d0b362881acb00b20d0c47898e5edac9cf1"
    );
}

#[test]
fn one_public_part_has_one_key() {
    let (_, stored) = Key::generate().unwrap();
    let mut ring = ring(&[(&stored, 1)]);
    assert_eq!(ring.add(stored, 2), Err(&1));
}

/// Time cannot be asserted in a test that others share a machine with; that the
/// comparison is the one without an early end can.
#[test]
fn hashes_are_compared_by_subtle_alone() {
    let source = include_str!("key.rs");
    assert!(source.contains("digest(&self.salt, text).ct_eq(&self.hash).into()"));
    let compared = source.lines().filter(|line| line.contains("hash") && (line.contains("==") || line.contains("!=")));
    assert_eq!(compared.collect::<Vec<_>>(), Vec::<&str>::new());
}

proptest! {
    #[test]
    fn no_text_is_a_key_by_chance(text in ".{0,120}") {
        let (_, stored) = Key::generate().unwrap();
        let ring = ring(&[(&stored, 1)]);
        prop_assert_eq!(ring.owner(&text, DATE), Err(Rejected::Unknown));
        prop_assert!(text.parse::<StoredKey>().is_err());
    }
}
