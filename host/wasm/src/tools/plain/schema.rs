//! The JSON Schema (2020-12) of a type.
//!
//! | type | JSON |
//! |---|---|
//! | integers up to 32 bits | a number |
//! | integers of 64 bits | a number, or its decimal digits as a text: many clients round numbers beyond 2^53 |
//! | floats | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `char`, `string`, `enum` | a text |
//! | `list<u8>` | a text in base64 |
//! | other lists, tuples, flags | an array |
//! | `record` | an object; an `option` in it may be left out |
//! | `option` | the value or null; one in another as `{"some": …}` or null |
//! | `variant` | the name of the case, or `{"CASE": …}` |
//! | `result` | `{"ok": …}` or `{"err": …}`, with null for what has no type |

use serde_json::{Map, Value, json};
use wasmtime::component::Type;
use wasmtime::component::types::{Case, ComponentFunc, Field};

/// How deep types may lie in each other.
const DEEPEST: u32 = 32;
/// What a schema may come to, in bytes, about. Types that are few can stand in many places.
const LONGEST: usize = 48 << 10;
/// What a type takes in it beside its names.
const EACH: usize = 100;

/// Whether a function takes and gives values alone, no resources, streams or futures, and
/// what they are can be told in few words.
pub(super) fn is_of_values(function: &ComponentFunc) -> bool {
    let mut left = LONGEST;
    let mut types = function.params().map(|(name, ty)| (name.len(), ty));
    types.all(|(name, ty)| takes(&mut left, name) && is_value(&ty, DEEPEST, &mut left))
        && function.results().all(|ty| is_value(&ty, DEEPEST, &mut left))
}

/// Takes room for something with so many bytes of names, each of which is told twice.
fn takes(left: &mut usize, names: usize) -> bool {
    match left.checked_sub(EACH.saturating_add(names.saturating_mul(2))) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

fn is_value(ty: &Type, depth: u32, left: &mut usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let names: usize = match ty {
        Type::Record(record) => record.fields().map(|field| field.name.len()).sum(),
        Type::Variant(variant) => variant.cases().map(|case| case.name.len().saturating_add(EACH)).sum(),
        Type::Enum(all) => all.names().map(|name| name.len().saturating_add(4)).sum(),
        Type::Flags(flags) => flags.names().map(|name| name.len().saturating_add(4)).sum(),
        _ => 0,
    };
    if !takes(left, names) {
        return false;
    }
    match ty {
        Type::List(list) => is_value(&list.ty(), depth, left),
        Type::Record(record) => record.fields().all(|field| is_value(&field.ty, depth, left)),
        Type::Tuple(tuple) => tuple.types().all(|ty| is_value(&ty, depth, left)),
        Type::Variant(variant) => variant.cases().all(|case| case.ty.is_none_or(|ty| is_value(&ty, depth, left))),
        Type::Option(option) => is_value(&option.ty(), depth, left),
        Type::Result(result) => {
            result.ok().is_none_or(|ty| is_value(&ty, depth, left))
                && result.err().is_none_or(|ty| is_value(&ty, depth, left))
        }
        _ => is_flat(ty),
    }
}

/// Whether a type is a value with no other types in it.
fn is_flat(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Bool
            | Type::S8
            | Type::U8
            | Type::S16
            | Type::U16
            | Type::S32
            | Type::U32
            | Type::S64
            | Type::U64
            | Type::Float32
            | Type::Float64
            | Type::Char
            | Type::String
            | Type::Enum(_)
            | Type::Flags(_)
    )
}

/// Of the object that a function takes.
pub(super) fn of_parameters(function: &ComponentFunc) -> Value {
    of_object(function.params().map(|(name, ty)| (name.to_owned(), ty)))
}

/// Of the object that a function gives. None: it gives nothing. What it gives as an error
/// is no result.
pub(super) fn of_result(function: &ComponentFunc) -> Option<Value> {
    let ty = match function.results().next()? {
        Type::Result(result) => result.ok()?,
        ty => ty,
    };
    Some(json!({
        "type": "object",
        "properties": { "result": of(&ty) },
        "required": ["result"],
        "additionalProperties": false,
    }))
}

fn of_object(fields: impl Iterator<Item = (String, Type)>) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, ty) in fields {
        properties.insert(name.clone(), of(&ty));
        if !matches!(ty, Type::Option(_)) {
            required.push(name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// Of a type.
fn of(ty: &Type) -> Value {
    let integer = |least: i64, most: i64| json!({ "type": "integer", "minimum": least, "maximum": most });
    match ty {
        Type::Bool => json!({ "type": "boolean" }),
        Type::S8 => integer(i8::MIN.into(), i8::MAX.into()),
        Type::U8 => integer(0, u8::MAX.into()),
        Type::S16 => integer(i16::MIN.into(), i16::MAX.into()),
        Type::U16 => integer(0, u16::MAX.into()),
        Type::S32 => integer(i32::MIN.into(), i32::MAX.into()),
        Type::U32 => integer(0, u32::MAX.into()),
        Type::S64 => json!({ "type": ["integer", "string"], "pattern": "^-?[0-9]+$" }),
        Type::U64 => json!({ "type": ["integer", "string"], "minimum": 0, "pattern": "^[0-9]+$" }),
        Type::Float32 | Type::Float64 => {
            json!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }] })
        }
        Type::Char => json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        Type::String => json!({ "type": "string" }),
        Type::List(list) => match list.ty() {
            Type::U8 => json!({ "type": "string", "contentEncoding": "base64" }),
            item => json!({ "type": "array", "items": of(&item) }),
        },
        Type::Record(record) => of_object(record.fields().map(|Field { name, ty }| (name.to_owned(), ty))),
        Type::Tuple(tuple) => {
            let items: Vec<Value> = tuple.types().map(|ty| of(&ty)).collect();
            let length = items.len();
            json!({ "type": "array", "prefixItems": items, "minItems": length, "maxItems": length })
        }
        Type::Variant(variant) => {
            let case = |Case { name, ty }: Case<'_>| match ty {
                None => json!({ "const": name }),
                Some(ty) => only(name, &of(&ty)),
            };
            json!({ "oneOf": variant.cases().map(case).collect::<Vec<_>>() })
        }
        Type::Enum(all) => json!({ "type": "string", "enum": all.names().collect::<Vec<_>>() }),
        Type::Option(option) => match option.ty() {
            inner @ Type::Option(_) => json!({ "anyOf": [only("some", &of(&inner)), { "type": "null" }] }),
            inner => json!({ "anyOf": [of(&inner), { "type": "null" }] }),
        },
        Type::Result(result) => {
            let side = |ty: Option<Type>| ty.map_or_else(|| json!({ "type": "null" }), |ty| of(&ty));
            json!({ "oneOf": [only("ok", &side(result.ok())), only("err", &side(result.err()))] })
        }
        Type::Flags(flags) => {
            let names: Vec<&str> = flags.names().collect();
            json!({ "type": "array", "items": { "enum": names }, "uniqueItems": true })
        }
        // Functions with others are no tools.
        _ => json!(false),
    }
}

/// An object with one property.
fn only(name: &str, schema: &Value) -> Value {
    json!({ "type": "object", "properties": { name: schema }, "required": [name], "additionalProperties": false })
}
