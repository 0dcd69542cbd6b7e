//! The real model's header, to be changed and written with weights of zeros.

use std::fs::File;
use std::io::{Read, Write};

const ALIGNMENT: usize = 32;

pub(crate) struct Model {
    /// Keys with the bytes of their values, the types first.
    keys: Vec<(String, Vec<u8>)>,
    tensors: Vec<Tensor>,
}

pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dims: Vec<u64>,
    kind: u32,
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        head
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().expect("four"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes(8).try_into().expect("eight"))
    }

    fn text(&mut self) -> String {
        let length = self.u64() as usize;
        String::from_utf8(self.bytes(length).to_vec()).expect("UTF-8")
    }

    fn value(&mut self) -> Vec<u8> {
        let before = self.0;
        match self.u32() {
            8 => drop(self.text()),
            9 => {
                let (kind, count) = (self.u32(), self.u64());
                for _ in 0..count {
                    if kind == 8 {
                        self.text();
                    } else {
                        self.bytes(scalar(kind));
                    }
                }
            }
            kind => drop(self.bytes(scalar(kind))),
        }
        before[..before.len() - self.0.len()].to_vec()
    }
}

fn scalar(kind: u32) -> usize {
    [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8][kind as usize]
}

/// Elements and bytes of a block.
fn block(kind: u32) -> (u64, u64) {
    match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        9 => (32, 36),
        14 => (256, 210),
        24 => (1, 1),
        27 | 28 => (1, 8),
        39 => (32, 17),
        other => panic!("the tests know no type {other}"),
    }
}

/// The beginning of a file: counts and keys.
pub(crate) fn head(keys: &[(String, Vec<u8>)], tensors: usize) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    out.extend((tensors as u64).to_le_bytes());
    out.extend((keys.len() as u64).to_le_bytes());
    for (key, value) in keys {
        text(&mut out, key);
        out.extend(value);
    }
    out
}

/// What a file says of a tensor whose data begins at `offset`.
pub(crate) fn entry(out: &mut Vec<u8>, name: &str, dims: &[u64], kind: u32, offset: u64) {
    text(out, name);
    out.extend((dims.len() as u32).to_le_bytes());
    dims.iter().for_each(|dim| out.extend(dim.to_le_bytes()));
    out.extend(kind.to_le_bytes());
    out.extend(offset.to_le_bytes());
}

impl Model {
    pub(crate) fn real() -> Self {
        let mut head = Vec::new();
        File::open(super::model_path()).expect("the model").take(16 << 20).read_to_end(&mut head).expect("reads");
        let mut reader = Reader(&head[8..]);
        let (tensors, keys) = (reader.u64(), reader.u64());
        let keys = (0..keys).map(|_| (reader.text(), reader.value())).collect();
        let tensors = (0..tensors)
            .map(|_| {
                let name = reader.text();
                let dims = (0..reader.u32()).map(|_| reader.u64()).collect();
                let kind = reader.u32();
                reader.u64();
                Tensor { name, dims, kind }
            })
            .collect();
        Self { keys, tensors }
    }

    pub(crate) fn into_keys(self) -> Vec<(String, Vec<u8>)> {
        self.keys
    }

    /// Sets or adds a key.
    pub(crate) fn set(&mut self, key: &str, value: Vec<u8>) {
        match self.keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.keys.push((key.to_owned(), value)),
        }
    }

    pub(crate) fn tensor(&mut self, name: &str) -> &mut Tensor {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).expect("there")
    }

    pub(crate) fn retype(&mut self, name: &str, kind: u32) {
        self.tensor(name).kind = kind;
    }

    pub(crate) fn token_count(&self) -> usize {
        let (_, value) = self.keys.iter().find(|(key, _)| key == "tokenizer.ggml.tokens").expect("there");
        u64::from_le_bytes(value[8..16].try_into().expect("eight")) as usize
    }

    /// Writes it; the weights are a hole in the file.
    pub(crate) fn written(&self) -> tempfile::NamedTempFile {
        let mut out = head(&self.keys, self.tensors.len());
        let mut offset = 0_u64;
        for tensor in &self.tensors {
            entry(&mut out, &tensor.name, &tensor.dims, tensor.kind, offset);
            let (elements, bytes) = block(tensor.kind);
            offset += tensor.dims.iter().product::<u64>().div_ceil(elements) * bytes;
            offset = offset.next_multiple_of(ALIGNMENT as u64);
        }
        out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&out).expect("writes");
        file.as_file().set_len(out.len() as u64 + offset).expect("grows");
        file
    }
}

pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

pub(crate) fn u32_value(number: u32) -> Vec<u8> {
    [4_u32.to_le_bytes(), number.to_le_bytes()].concat()
}

pub(crate) fn f32_value(number: f32) -> Vec<u8> {
    [6_u32.to_le_bytes(), number.to_le_bytes()].concat()
}

pub(crate) fn boolean(value: bool) -> Vec<u8> {
    let mut out = 7_u32.to_le_bytes().to_vec();
    out.push(value.into());
    out
}

pub(crate) fn text_value(value: &str) -> Vec<u8> {
    let mut out = 8_u32.to_le_bytes().to_vec();
    text(&mut out, value);
    out
}

pub(crate) fn array<const N: usize>(kind: u32, numbers: [[u8; 4]; N]) -> Vec<u8> {
    let mut out = [9_u32.to_le_bytes(), kind.to_le_bytes()].concat();
    out.extend((N as u64).to_le_bytes());
    out.extend(numbers.concat());
    out
}

pub(crate) fn texts(all: impl Iterator<Item = String>) -> Vec<u8> {
    let all: Vec<String> = all.collect();
    let mut out = [9_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat();
    out.extend((all.len() as u64).to_le_bytes());
    all.iter().for_each(|one| text(&mut out, one));
    out
}
