//! What single options may be. Each error says what would be right; clap adds
//! the option and what was given.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::SystemTime;

use nala_manifest::operator::Operator;

/// A whole number within a range, both ends included.
pub(super) fn within<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("must be a whole number from {} to {}", range.start(), range.end())),
    }
}

/// A size in bytes, as manifests write them.
pub(super) fn size(text: &str) -> Result<u64, String> {
    nala_manifest::quantity::bytes(text)
        .ok_or_else(|| "must be a size with its unit, such as 512MiB or 8GiB, and not zero".to_owned())
}

/// `127.0.0.1:3000`, `[::]:3000`, `localhost:3000`, or `:3000` and `3000` for
/// this machine only.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None if text.parse::<u16>().is_ok() => format!("127.0.0.1:{text}"),
        None => text.to_owned(),
    };
    let hint = "write IP:PORT, for example 127.0.0.1:3000 or 0.0.0.0:8080";
    full.to_socket_addrs()
        .map_err(|error| format!("{error}; {hint}"))?
        .next()
        .ok_or_else(|| format!("the name has no address; {hint}"))
}

/// `NAME=VALUE`. The value is not repeated in errors: it may be a secret.
pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE: a variable that the manifest declares, and its value".to_owned()),
    }
}

/// A moment to come, as the operator's file writes it. A day stands for its first
/// moment in UTC.
pub(super) fn moment(text: &str) -> Result<String, String> {
    let hint = "write a day, or a moment with its offset, such as 2027-01-31 or 2027-01-31T18:00:00+01:00";
    // It becomes a part of a file, so it may have nothing that means something there.
    if text.contains(|c: char| !c.is_ascii_digit() && !"-:.+TtZz".contains(c)) {
        return Err(hint.to_owned());
    }
    let whole = if text.len() == "2027-01-31".len() { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let expires = expiry(&whole).ok_or(hint)?;
    match expires > SystemTime::now() {
        true => Ok(whole),
        false => Err("that moment is over: such a key would never be taken".to_owned()),
    }
}

/// What whoever reads the file takes a moment for.
fn expiry(text: &str) -> Option<SystemTime> {
    let key = format!("nala-sha256:{}:{}:{}", "0".repeat(16), "0".repeat(32), "0".repeat(64));
    let file = format!("[admin]\nkeys = [{{ key = \"{key}\", expires = {text} }}]\n");
    Operator::parse(&file, None, Path::new("")).ok()?.admin_keys.first()?.expires()
}

/// A text of one line.
pub(super) fn note(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("write whom the key is for, or leave --note out".to_owned()),
        text if text.contains(char::is_control) => Err("write it in one line, without control characters".to_owned()),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_be_short() {
        for (text, expected) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            (":8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("[::1]:8080", "[::1]:8080"),
        ] {
            assert_eq!(address(text).unwrap(), expected.parse().unwrap(), "{text}");
        }
        for wrong in ["", "127.0.0.1", "127.0.0.1:99999", ":x"] {
            assert!(address(wrong).unwrap_err().contains("IP:PORT"), "{wrong}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_told_the_range() {
        let parse = within(1..=64_u32);
        assert_eq!((parse("1"), parse("64")), (Ok(1), Ok(64)));
        for wrong in ["0", "65", "-1", "x", "", "1.5", "18446744073709551615"] {
            assert_eq!(parse(wrong).unwrap_err(), "must be a whole number from 1 to 64", "{wrong}");
        }
    }

    #[test]
    fn moments_are_those_of_the_operators_file() {
        assert_eq!(moment("2999-01-31").unwrap(), "2999-01-31T00:00:00Z");
        for same in ["2999-01-31T18:00:00Z", "2999-01-31T18:00:00+01:00", "2999-01-31T18:00:00.5Z"] {
            assert_eq!(moment(same).unwrap(), same);
        }
        for wrong in ["", "tomorrow", "2999-02-30", "2999-01-31T18:00:00", "31.01.2999", "2999-01-31 }", "é999-01-31"]
        {
            assert!(moment(wrong).unwrap_err().contains("2027-01-31"), "{wrong}");
        }
        assert!(moment("2001-01-31").unwrap_err().contains("is over"));
    }
}
