use std::io::Cursor;

use proptest::prelude::*;

use super::super::{TensorKind, Value, ValueKind};
use super::*;

/// Writes GGUF bytes.
#[derive(Clone)]
struct Builder {
    version: u32,
    values: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: usize,
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}

impl Builder {
    fn new() -> Self {
        Self { version: 3, values: Vec::new(), tensors: Vec::new(), data: 0 }
    }

    fn value(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.values.push([text(key), kind.to_le_bytes().to_vec(), value.to_vec()].concat());
        self
    }

    fn tensor(mut self, name: &str, dimensions: &[u64], kind: u32, offset: u64) -> Self {
        let mut bytes = text(name);
        bytes.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|d| bytes.extend(d.to_le_bytes()));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        self.tensors.push(bytes);
        self
    }

    fn build(&self) -> Vec<u8> {
        let mut bytes = b"GGUF".to_vec();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend((self.tensors.len() as u64).to_le_bytes());
        bytes.extend((self.values.len() as u64).to_le_bytes());
        bytes.extend(self.values.concat());
        bytes.extend(self.tensors.concat());
        bytes.resize(bytes.len().next_multiple_of(32) + self.data, 0);
        bytes
    }
}

fn parse(bytes: &[u8]) -> Result<Header, HeaderError> {
    Header::parse(Cursor::new(bytes), bytes.len() as u64)
}

/// A small model with every kind of thing in it.
fn small() -> Builder {
    let strings = [8_u32.to_le_bytes().to_vec(), 2_u64.to_le_bytes().to_vec(), text("a"), text("b")].concat();
    let nested = [
        9_u32.to_le_bytes().to_vec(),
        1_u64.to_le_bytes().to_vec(),
        4_u32.to_le_bytes().to_vec(),
        3_u64.to_le_bytes().to_vec(),
        vec![0; 12],
    ]
    .concat();
    let mut builder = Builder::new()
        .value("general.architecture", 8, &text("llama"))
        .value("general.name", 8, &text("Tiny"))
        .value("general.license", 8, &text("mit"))
        .value("llama.context_length", 4, &128_u32.to_le_bytes())
        .value("llama.block_count", 5, &2_i32.to_le_bytes())
        .value("tokenizer.ggml.model", 8, &text("gpt2"))
        .value("tokenizer.ggml.tokens", 9, &strings)
        .value("tokenizer.chat_template", 8, &text("{{ x }}"))
        .value("scale", 6, &1.5_f32.to_le_bytes())
        .value("flag", 7, &[1])
        .value("nested", 9, &nested)
        .tensor("a", &[32, 2], 3, 0)
        .tensor("b", &[8], 0, 64);
    builder.data = 64 + 32;
    builder
}

#[test]
fn a_header_is_read_whole() {
    let header = parse(&small().build()).unwrap();
    assert_eq!(header.metadata["scale"], Value::Float(1.5));
    assert_eq!(header.metadata["flag"], Value::Bool(true));
    let (kind, len) = (ValueKind::Array, 1);
    assert_eq!(header.metadata["nested"], Value::Array { kind, len });
    assert_eq!(header.tensors[0].dimensions, [32, 2]);
    assert_eq!(header.tensors[0].bytes, Some(40));

    let summary = header.summary();
    assert_eq!(summary.architecture.as_deref(), Some("llama"));
    assert_eq!(summary.name.as_deref(), Some("Tiny"));
    assert_eq!(summary.parameters, 72);
    assert_eq!(summary.context_length, Some(128));
    assert_eq!(summary.layers, Some(2));
    assert_eq!(summary.vocabulary, Some(2));
    assert_eq!(summary.chat_template_bytes, Some(7));
    assert_eq!(summary.kinds[0].kind, TensorKind::new(3));
    assert_eq!(summary.kinds[0].bytes, 40);
}

#[test]
fn damage_is_named() {
    let say = |builder: Builder| parse(&builder.build()).unwrap_err().to_string();
    let versioned = |version| {
        let mut builder = small();
        builder.version = version;
        builder
    };
    assert!(parse(b"").unwrap_err().to_string().contains("not a GGUF"));
    assert!(parse(b"PK\x03\x04....").unwrap_err().to_string().contains("not a GGUF"));
    assert!(say(versioned(1)).contains("version 1"));
    assert!(say(versioned(3 << 24)).contains("big-endian"));
    assert!(parse(&versioned(2).build()).is_ok());

    let mut short = small();
    short.data = 95;
    let message = say(short);
    assert!(message.contains("truncated") && message.contains("`b`"), "{message}");

    assert!(say(small().value("x", 13, &[0; 8])).contains("unknown kind 13"));
    assert!(say(small().value("flag", 7, &[1])).contains("twice"));
    assert!(say(small().value("general.alignment", 4, &3_u32.to_le_bytes())).contains("alignment"));
    assert!(say(small().tensor("c", &[33], 3, 0)).contains("blocks"));
    assert!(say(small().tensor("c", &[1; 5], 0, 0)).contains("four dimensions"));
    assert!(say(small().tensor("c", &[u64::MAX, 2], 0, 0)).contains("2^64"));
    assert!(say(small().tensor("c", &[1], 0, u64::MAX)).contains("2^64"));
    assert!(say(small().tensor("c", &[1], 0, 1 << 40)).contains("truncated"));

    let mut counts = small().build();
    counts[8..16].fill(0xff);
    assert!(parse(&counts).unwrap_err().to_string().contains("tensors"));
    counts[16..24].fill(0xff);
    assert!(parse(&counts).unwrap_err().to_string().contains("metadata values"));

    let long = [u64::MAX.to_le_bytes().as_slice(), b"x"].concat();
    assert!(say(small().value("x", 8, &long)).contains("text of"));
    let mut deep = Vec::new();
    for _ in 0..8 {
        deep.extend(9_u32.to_le_bytes());
        deep.extend(1_u64.to_le_bytes());
    }
    assert!(say(small().value("x", 9, &deep)).contains("too deeply"));
}

#[test]
fn an_unknown_tensor_format_is_listed_not_refused() {
    let header = parse(&small().tensor("c", &[7], 99, 0).build()).unwrap();
    assert_eq!(header.tensors[2].bytes, None);
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let whole = small().build();
    for len in 0..whole.len() {
        assert!(parse(&whole[..len]).is_err(), "cut at {len}");
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let _ = parse(&bytes);
        let _ = parse(&[b"GGUF\x03\0\0\0".as_slice(), &bytes].concat());
    }

    #[test]
    fn mutated_headers_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = small().build();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(header) = parse(&bytes) {
            let _ = header.summary();
        }
        bytes.truncate(cut.index(bytes.len()));
        let _ = parse(&bytes);
    }
}

#[test]
fn what_is_no_file_is_named_and_never_opened() {
    let dir = tempfile::tempdir().unwrap();
    let error = Header::read(dir.path()).unwrap_err().to_string();
    assert!(error.contains("is a folder, not a file"), "{error}");
    if cfg!(unix) {
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = Header::read(&pipe).unwrap_err().to_string();
        assert!(error.contains("is a pipe, not a file"), "{error}");
    }
}

#[test]
fn long_names_are_shown_in_part() {
    let name = format!("\u{1b}{}", "k".repeat(60_000));
    let error =
        parse(&Builder::new().value(&name, 4, &[0; 4]).value(&name, 4, &[0; 4]).build()).unwrap_err().to_string();
    assert!(error.contains("kkk…") && error.len() < 200 && !error.contains('\u{1b}'), "{error}");
    let error = parse(&Builder::new().tensor(&name, &[1; 5], 0, 0).build()).unwrap_err().to_string();
    assert!(error.len() < 250, "{error}");
}
