//! Headers made up byte by byte.

use super::*;

/// A file of one F32 tensor of 8 elements and some keys of each shape.
fn sample() -> Vec<u8> {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };
    out.extend(b"GGUF");
    out.extend(3_u32.to_le_bytes());
    out.extend(1_u64.to_le_bytes());
    out.extend(4_u64.to_le_bytes());
    text(&mut out, "general.architecture");
    out.extend(8_u32.to_le_bytes());
    text(&mut out, "llama");
    text(&mut out, "general.alignment");
    out.extend(4_u32.to_le_bytes());
    out.extend(64_u32.to_le_bytes());
    text(&mut out, "tokenizer.ggml.tokens");
    out.extend(9_u32.to_le_bytes());
    out.extend(8_u32.to_le_bytes());
    out.extend(2_u64.to_le_bytes());
    text(&mut out, "a");
    text(&mut out, "b");
    text(&mut out, "tokenizer.ggml.scores");
    out.extend(9_u32.to_le_bytes());
    out.extend(6_u32.to_le_bytes());
    out.extend(2_u64.to_le_bytes());
    out.extend([0; 8]);
    text(&mut out, "token_embd.weight");
    out.extend(2_u32.to_le_bytes());
    out.extend(4_u64.to_le_bytes());
    out.extend(2_u64.to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    out.extend(0_u64.to_le_bytes());
    out.resize(out.len().next_multiple_of(64) + 32, 0);
    out
}

fn read_all(bytes: &[u8]) -> Result<Header, Fault> {
    read(bytes, bytes.len() as u64, Purpose::Model)
}

#[test]
fn a_whole_file_is_read() {
    let header = read_all(&sample()).unwrap();
    assert_eq!(header, Header { arch: "llama".into(), tensors: 1, has_tokens: true, has_head: false });
}

#[test]
fn every_truncation_is_noticed() {
    let file = sample();
    for end in 0..file.len() {
        let fault = read_all(&file[..end]).unwrap_err();
        let noticed = matches!(&fault, Fault::Truncated { expected } if *expected > end as u64);
        assert!(noticed, "{end}: {fault:?}");
    }
}

#[test]
fn no_flipped_byte_leads_astray() {
    let file = sample();
    for at in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut file = file.clone();
            file[at] ^= flip;
            // Whatever it says: it ends, and it does not panic.
            let _ = read_all(&file);
        }
    }
}

#[test]
fn lengths_are_not_believed() {
    let mut file = sample();
    file[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(read_all(&file), Err(Fault::Damaged(_))));
    let mut file = sample();
    file[24..32].copy_from_slice(&(u64::MAX - 3).to_le_bytes());
    assert!(matches!(read_all(&file), Err(Fault::Damaged(_))));
}

#[test]
fn other_formats_and_versions_are_told_apart() {
    assert!(matches!(read_all(b"PK\x03\x04etc"), Err(Fault::NotGguf(_))));
    let mut file = sample();
    file[4] = 1;
    assert!(matches!(read_all(&file), Err(Fault::Version(1))));
}
