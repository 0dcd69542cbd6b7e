//! Base64 (RFC 4648, section 4), as far as it is written here.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends the digits of some bytes, filled up with `=`.
pub(super) fn write(bytes: &[u8], out: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            // A group of so many bytes has one digit more than bytes.
            let value = (bits >> (18 - 6 * digit)) & 0x3f;
            let known = usize::try_from(value).ok().and_then(|value| DIGITS.get(value)).copied();
            out.push(known.filter(|_| digit <= group.len()).unwrap_or(b'='));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        for (bytes, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            write(bytes.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        let mut out = Vec::new();
        write(&[0xfb, 0xff, 0xbf], &mut out);
        assert_eq!(out, b"+/+/");
    }
}
