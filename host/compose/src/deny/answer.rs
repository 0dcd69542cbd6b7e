//! What a function returns, as the canonical ABI lays it out.
//!
//! Source: <https://github.com/WebAssembly/component-model/blob/main/design/mvp/CanonicalABI.md>.

use wit_parser::{Int, Resolve, Result_, SizeAlign, Type, TypeDefKind};

use super::memory::Memory;
use crate::rights::Answer;

/// Told by errors that take a text.
const WHY: &str = "this dependency does not inherit it: see inherit_configuration in spin.toml";

/// A length and an address each have this many bytes.
const POINTER: usize = 4;

/// Types, and how they lie in memory.
pub(super) struct Layout<'r> {
    resolve: &'r Resolve,
    sizes: SizeAlign,
}

impl<'r> Layout<'r> {
    pub(super) fn new(resolve: &'r Resolve) -> Self {
        let mut sizes = SizeAlign::default();
        sizes.fill(resolve);
        Self { resolve, sizes }
    }

    /// Puts a function's answer into memory; gives its address. None: the type has no such
    /// answer.
    pub(super) fn place(&self, result: &Type, answer: Answer, memory: &mut Memory) -> Option<usize> {
        // Zeros are an empty list, an empty string, no option and no error.
        let address = memory.reserve(self.sizes.size(result).size_wasm32());
        match answer {
            Answer::Nothing => Some(address),
            Answer::Error(name) => self.error(result, name, address, memory).map(|()| address),
        }
    }

    fn error(&self, result: &Type, name: &str, address: usize, memory: &mut Memory) -> Option<()> {
        let TypeDefKind::Result(Result_ { ok, err: Some(error) }) = self.kind(result)? else { return None };
        // The discriminant: 0 is `ok`, 1 is `err`.
        memory.write_number(address, 1, 1);
        let error_at = address + self.payload(Int::U8, [ok.as_ref(), Some(error)]);
        match self.kind(error)? {
            TypeDefKind::Enum(cases) => {
                let index = cases.cases.iter().position(|case| case.name == name)?;
                memory.write_number(error_at, index, bytes_of(cases.tag()));
            }
            TypeDefKind::Variant(cases) => {
                let index = cases.cases.iter().position(|case| case.name == name)?;
                memory.write_number(error_at, index, bytes_of(cases.tag()));
                if cases.cases.get(index)?.ty.is_some_and(|ty| self.is_text(&ty)) {
                    let payload = self.payload(cases.tag(), cases.cases.iter().map(|case| case.ty.as_ref()));
                    let text = memory.text(WHY);
                    memory.write_number(error_at + payload, text, POINTER);
                    memory.write_number(error_at + payload + POINTER, WHY.len(), POINTER);
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn payload<'t>(&self, tag: Int, cases: impl IntoIterator<Item = Option<&'t Type>>) -> usize {
        self.sizes.payload_offset(tag, cases).size_wasm32()
    }

    fn is_text(&self, ty: &Type) -> bool {
        match ty {
            Type::String => true,
            Type::Id(id) => match self.resolve.types.get(*id).map(|ty| &ty.kind) {
                Some(TypeDefKind::Type(other)) => self.is_text(other),
                _ => false,
            },
            _ => false,
        }
    }

    /// What a type is, behind the names that it was given.
    pub(super) fn kind(&self, ty: &Type) -> Option<&'r TypeDefKind> {
        let Type::Id(id) = ty else { return None };
        match &self.resolve.types.get(*id)?.kind {
            TypeDefKind::Type(other) => self.kind(other),
            kind => Some(kind),
        }
    }
}

fn bytes_of(tag: Int) -> usize {
    match tag {
        Int::U8 => 1,
        Int::U16 => 2,
        Int::U32 => 4,
        Int::U64 => 8,
    }
}
