//! Values of a component as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use wasmtime::component::{Type, Val};

/// The largest integer that every reader of JSON has exactly.
const EXACT: u64 = 1 << 53;

/// A value of a type as the schema has it.
pub(super) fn value(ty: &Type, value: &Val) -> Value {
    match (ty, value) {
        (Type::List(list), Val::List(items)) => match list.ty() {
            Type::U8 => json!(STANDARD.encode(bytes(items))),
            item => items.iter().map(|value| self::value(&item, value)).collect(),
        },
        (Type::Tuple(tuple), Val::Tuple(items)) => {
            tuple.types().zip(items).map(|(ty, value)| self::value(&ty, value)).collect()
        }
        (Type::Record(record), Val::Record(fields)) => {
            let pairs = record.fields().zip(fields);
            // What is not there is left out; nulls would be more to read.
            let pairs = pairs.filter(|(_, (_, value))| !matches!(value, Val::Option(None)));
            pairs
                .map(|(field, (name, value))| (name.clone(), self::value(&field.ty, value)))
                .collect::<Map<_, _>>()
                .into()
        }
        (Type::Variant(variant), Val::Variant(name, payload)) => {
            let ty = variant.cases().find(|case| case.name == name).and_then(|case| case.ty);
            match (ty, payload) {
                (Some(ty), Some(payload)) => json!({ name.as_str(): self::value(&ty, payload) }),
                _ => json!(name),
            }
        }
        (Type::Option(option), Val::Option(Some(inner))) => match option.ty() {
            ty @ Type::Option(_) => json!({ "some": self::value(&ty, inner) }),
            ty => self::value(&ty, inner),
        },
        (Type::Result(result), Val::Result(outcome)) => match outcome {
            Ok(payload) => json!({ "ok": side(result.ok().as_ref(), payload.as_deref()) }),
            Err(payload) => json!({ "err": side(result.err().as_ref(), payload.as_deref()) }),
        },
        (_, value) => flat(value),
    }
}

/// What one side of a result has, or null.
pub(super) fn side(ty: Option<&Type>, payload: Option<&Val>) -> Value {
    ty.zip(payload).map_or(Value::Null, |(ty, payload)| value(ty, payload))
}

/// A value with no others in it.
fn flat(value: &Val) -> Value {
    match value {
        Val::Bool(value) => json!(value),
        Val::S8(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::S16(value) => json!(value),
        Val::U16(value) => json!(value),
        Val::S32(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::S64(value) if value.unsigned_abs() <= EXACT => json!(value),
        Val::S64(value) => json!(value.to_string()),
        Val::U64(value) if *value <= EXACT => json!(value),
        Val::U64(value) => json!(value.to_string()),
        Val::Float32(value) if value.is_finite() => short(*value),
        Val::Float32(value) => json!(unusual(f64::from(*value))),
        Val::Float64(value) if value.is_finite() => json!(value),
        Val::Float64(value) => json!(unusual(*value)),
        Val::Char(value) => json!(value.to_string()),
        Val::String(value) | Val::Enum(value) => json!(value),
        Val::Flags(names) => json!(names),
        // An option that is none; functions with others are no tools.
        _ => Value::Null,
    }
}

/// A float with the fewest digits that give it again.
fn short(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or_else(|_| json!(value), |value| json!(value))
}

fn unusual(value: f64) -> &'static str {
    match value {
        value if value.is_nan() => "NaN",
        value if value > 0.0 => "Infinity",
        _ => "-Infinity",
    }
}

fn bytes(items: &[Val]) -> Vec<u8> {
    let byte = |item: &Val| if let Val::U8(byte) = item { Some(*byte) } else { None };
    items.iter().filter_map(byte).collect()
}
