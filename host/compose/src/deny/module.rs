//! The code of the component.

use std::collections::BTreeMap;

use wasm_encoder::{
    BlockType, CodeSection, ConstExpr, DataSection, EntityType, ExportKind, ExportSection, Function, FunctionSection,
    ImportSection, MemorySection, MemoryType, Module, TypeSection, ValType,
};
use wit_parser::abi::{AbiVariant, FlatTypes, WasmSignature, WasmType};
use wit_parser::{
    Handle, InterfaceId, LiftLowerAbi, ManglingAndAbi, Resolve, ResourceIntrinsic, Type, TypeDefKind, TypeId,
    TypeOwner, WasmImport, WorldKey,
};

use super::answer::Layout;
use super::key_of;
use super::memory::Memory;
use crate::rights::Answer;

/// The names that the encoder of components knows; asynchronous functions answer at once.
const ABI: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
/// Bytes of a page of memory, as a power of two.
const PAGE_BITS: u32 = 16;

/// An interface that is denied.
#[derive(Debug)]
pub(super) struct Denied {
    pub(super) key: WorldKey,
    pub(super) interface: InterfaceId,
    /// What its functions answer; the others trap.
    pub(super) answers: &'static [(&'static str, Answer)],
}

/// A function of the module.
struct Exported {
    name: String,
    signature: WasmSignature,
    body: Body,
}

/// What it does.
enum Body {
    /// It needs a handle that nobody can have.
    Trap,
    /// Gives handles back that it was passed, and returns this.
    Return { drops: Vec<Dropped>, value: Value },
}

/// A handle in a parameter.
struct Dropped {
    resource: TypeId,
    /// The parameter with the handle.
    local: u32,
    /// The parameter that says whether there is one.
    only_if: Option<u32>,
}

/// What a function returns.
enum Value {
    /// Nothing.
    None,
    /// Zero, which is the empty one of everything that is one number.
    Zero,
    /// The address of what it returns.
    At(usize),
}

/// Makes the module.
pub(super) fn build(resolve: &Resolve, denied: &[Denied]) -> Vec<u8> {
    let layout = Layout::new(resolve);
    let mut memory = Memory::default();
    let mut functions = Vec::new();
    for one in denied {
        let Some(interface) = resolve.interfaces.get(one.interface) else { continue };
        for function in interface.functions.values() {
            let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
            let answer = one.answers.iter().find(|(name, _)| *name == function.name).map(|(_, answer)| *answer);
            let value = answer.and_then(|answer| value(&layout, function, &signature, answer, &mut memory));
            let body = match value {
                Some(value) if !signature.indirect_params => {
                    Body::Return { drops: drops(resolve, &layout, function), value }
                }
                _ => Body::Trap,
            };
            let name = function.legacy_core_export_name(Some(&resolve.name_world_key(&one.key))).into_owned();
            functions.push(Exported { name, signature, body });
        }
    }
    encode(resolve, &functions, &memory)
}

/// None: the function cannot answer so.
fn value(
    layout: &Layout<'_>,
    function: &wit_parser::Function,
    signature: &WasmSignature,
    answer: Answer,
    memory: &mut Memory,
) -> Option<Value> {
    let Some(result) = &function.result else { return Some(Value::None) };
    match (signature.retptr, answer) {
        (true, _) => layout.place(result, answer, memory).map(Value::At),
        (false, Answer::Nothing) => Some(Value::Zero),
        // An error that is one number: no interface of the table has that.
        (false, Answer::Error(_)) => None,
    }
}

/// The handles that a function is passed. One that was lent must be given back before
/// the function returns, and others would add up.
fn drops(resolve: &Resolve, layout: &Layout<'_>, function: &wit_parser::Function) -> Vec<Dropped> {
    let mut drops = Vec::new();
    let mut local = 0;
    for parameter in &function.params {
        match layout.kind(&parameter.ty) {
            Some(TypeDefKind::Handle(handle)) => drops.push(dropped(resolve, *handle, local, None)),
            Some(TypeDefKind::Option(inner)) => {
                if let Some(TypeDefKind::Handle(handle)) = layout.kind(inner) {
                    drops.push(dropped(resolve, *handle, local + 1, Some(local)));
                }
            }
            _ => {}
        }
        local += flat(resolve, &parameter.ty);
    }
    drops
}

fn dropped(resolve: &Resolve, handle: Handle, local: u32, only_if: Option<u32>) -> Dropped {
    let (Handle::Own(mut resource) | Handle::Borrow(mut resource)) = handle;
    // To where it is defined.
    while let Some(TypeDefKind::Type(Type::Id(other))) = resolve.types.get(resource).map(|ty| &ty.kind) {
        resource = *other;
    }
    Dropped { resource, local, only_if }
}

/// How many parameters of the module's function a parameter becomes.
fn flat(resolve: &Resolve, ty: &Type) -> u32 {
    let mut storage = [WasmType::I32; Resolve::MAX_FLAT_PARAMS];
    let mut types = FlatTypes::new(&mut storage);
    resolve.push_flat(ty, &mut types);
    types.to_vec().len() as u32
}

fn encode(resolve: &Resolve, functions: &[Exported], memory: &Memory) -> Vec<u8> {
    let mut types = TypeSection::new();
    let mut imports = ImportSection::new();
    // Each resource once, by the number of the function that drops it.
    let mut droppers: BTreeMap<(String, String), u32> = BTreeMap::new();
    types.ty().function([ValType::I32], []);
    for function in functions {
        let Body::Return { drops, .. } = &function.body else { continue };
        for one in drops {
            let Some(name) = dropper(resolve, one.resource) else { continue };
            let next = droppers.len() as u32;
            if let std::collections::btree_map::Entry::Vacant(entry) = droppers.entry(name) {
                imports.import(&entry.key().0, &entry.key().1, EntityType::Function(0));
                entry.insert(next);
            }
        }
    }
    let (mut section, mut exports, mut code) = (FunctionSection::new(), ExportSection::new(), CodeSection::new());
    let first = droppers.len() as u32;
    types.ty().function([ValType::I32; 4], [ValType::I32]);
    section.function(1);
    exports.export("cabi_realloc", ExportKind::Func, first);
    exports.export("memory", ExportKind::Memory, 0);
    code.function(&realloc(memory));
    for (index, function) in functions.iter().enumerate() {
        let index = index as u32;
        let values = |types: &[WasmType]| types.iter().map(value_type).collect::<Vec<_>>();
        types.ty().function(values(&function.signature.params), values(&function.signature.results));
        section.function(2 + index);
        exports.export(&function.name, ExportKind::Func, first + 1 + index);
        code.function(&body(resolve, function, &droppers));
    }
    let mut memories = MemorySection::new();
    let pages = (memory.end() as u64).div_ceil(1 << PAGE_BITS);
    memories.memory(MemoryType { minimum: pages, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut data = DataSection::new();
    let (at, constants) = memory.constants();
    data.active(0, &ConstExpr::i32_const(at as i32), constants.iter().copied());
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&section).section(&memories).section(&exports);
    module.section(&code).section(&data);
    module.finish()
}

/// What drops a resource, as the encoder of components calls it.
fn dropper(resolve: &Resolve, resource: TypeId) -> Option<(String, String)> {
    let TypeOwner::Interface(owner) = resolve.types.get(resource)?.owner else { return None };
    let key = key_of(owner);
    let import =
        WasmImport::ResourceIntrinsic { interface: Some(&key), resource, intrinsic: ResourceIntrinsic::ImportedDrop };
    Some(resolve.wasm_import_name(ABI, import))
}

fn body(resolve: &Resolve, function: &Exported, droppers: &BTreeMap<(String, String), u32>) -> Function {
    let mut code = Function::new([]);
    let mut at = code.instructions();
    match &function.body {
        Body::Trap => {
            at.unreachable();
        }
        Body::Return { drops, value } => {
            for one in drops {
                let Some(dropper) = dropper(resolve, one.resource).and_then(|name| droppers.get(&name)) else {
                    continue;
                };
                if let Some(condition) = one.only_if {
                    at.local_get(condition).if_(BlockType::Empty);
                }
                at.local_get(one.local).call(*dropper);
                if one.only_if.is_some() {
                    at.end();
                }
            }
            match (value, function.signature.results.first()) {
                (Value::At(address), _) => {
                    at.i32_const(*address as i32);
                }
                (Value::Zero, Some(WasmType::I64 | WasmType::PointerOrI64)) => {
                    at.i64_const(0);
                }
                (Value::Zero, Some(WasmType::F32)) => {
                    at.f32_const(0.0.into());
                }
                (Value::Zero, Some(WasmType::F64)) => {
                    at.f64_const(0.0.into());
                }
                (Value::Zero, Some(_)) => {
                    at.i32_const(0);
                }
                (Value::Zero, None) | (Value::None, _) => {}
            }
        }
    }
    at.end();
    code
}

/// Gives callers the room behind the constants, each time the same: nobody reads what
/// they put there, so it cannot add up.
fn realloc(memory: &Memory) -> Function {
    let start = memory.end();
    // The room that is wanted, in pages; the parameters are the old address and size,
    // the alignment and the new size.
    let (size, pages) = (3, 4);
    let mut code = Function::new([(1, ValType::I32)]);
    code.instructions()
        .local_get(size)
        .i64_extend_i32_u()
        .i64_const((start + (1 << PAGE_BITS) - 1) as i64)
        .i64_add()
        .i64_const(i64::from(PAGE_BITS))
        .i64_shr_u()
        .i32_wrap_i64()
        .memory_size(0)
        .i32_sub()
        .local_tee(pages)
        .i32_const(0)
        .i32_gt_s()
        .if_(BlockType::Empty)
        .local_get(pages)
        .memory_grow(0)
        .i32_const(-1)
        .i32_eq()
        .if_(BlockType::Empty)
        .unreachable()
        .end()
        .end()
        .i32_const(start as i32)
        .end();
    code
}

fn value_type(ty: &WasmType) -> ValType {
    match ty {
        WasmType::I64 | WasmType::PointerOrI64 => ValType::I64,
        WasmType::F32 => ValType::F32,
        WasmType::F64 => ValType::F64,
        WasmType::I32 | WasmType::Pointer | WasmType::Length => ValType::I32,
    }
}
