//! JSON as values for a component.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use wasmtime::component::types::ComponentFunc;
use wasmtime::component::{Type, Val};

/// What values may take of the host's memory: JSON of few bytes can be values of many.
struct Room {
    left: usize,
    most: usize,
}

impl Room {
    /// Takes room for a value with so many bytes in it.
    fn take(&mut self, bytes: usize, at: &str) -> Result<(), String> {
        match self.left.checked_sub(size_of::<Val>().saturating_add(bytes)) {
            Some(rest) => {
                self.left = rest;
                Ok(())
            }
            None => Err(format!("the arguments are more than {} bytes as values, at {at}", self.most)),
        }
    }
}

/// The parameters of a function out of an object, as text. They take no more than so many
/// bytes.
pub(super) fn parameters(function: &ComponentFunc, arguments: &str, most: usize) -> Result<Vec<Val>, String> {
    let room = &mut Room { left: most, most };
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments are no JSON: {error}"))?;
    let Value::Object(mut arguments) = arguments else {
        return Err("the arguments are no JSON object".into());
    };
    let all: Vec<(String, Type)> = function.params().map(|(name, ty)| (name.to_owned(), ty)).collect();
    let values = fields(&all, &mut arguments, "", room)?;
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

/// The fields of an object, and none beside them. `at` is where it stands.
fn fields(
    all: &[(String, Type)],
    object: &mut Map<String, Value>,
    at: &str,
    room: &mut Room,
) -> Result<Vec<(String, Val)>, String> {
    let mut values = Vec::with_capacity(all.len());
    for (name, ty) in all {
        let at = format!("{at}/{name}");
        room.take(name.len().saturating_add(size_of::<String>()), &at)?;
        let field = match (object.remove(name), ty) {
            (Some(found), ty) => value(ty, found, &at, room)?,
            (None, Type::Option(_)) => Val::Option(None),
            (None, _) => return Err(format!("{at} is missing")),
        };
        values.push((name.clone(), field));
    }
    match object.keys().next() {
        Some(other) => Err(format!("{at}/{other} is not known")),
        None => Ok(values),
    }
}

/// A value of a type out of JSON. `at` is where it stands, for whoever wrote it.
fn value(ty: &Type, json: Value, at: &str, room: &mut Room) -> Result<Val, String> {
    room.take(json.as_str().map_or(0, str::len), at)?;
    let wrong = |expected: &str| Err(format!("{at} has to be {expected}"));
    match (ty, json) {
        (Type::Bool, Value::Bool(value)) => Ok(Val::Bool(value)),
        (Type::Bool, _) => wrong("true or false"),
        (Type::S8, json) => integer(&json, at).map(Val::S8),
        (Type::U8, json) => integer(&json, at).map(Val::U8),
        (Type::S16, json) => integer(&json, at).map(Val::S16),
        (Type::U16, json) => integer(&json, at).map(Val::U16),
        (Type::S32, json) => integer(&json, at).map(Val::S32),
        (Type::U32, json) => integer(&json, at).map(Val::U32),
        (Type::S64, json) => integer(&json, at).map(Val::S64),
        (Type::U64, json) => integer(&json, at).map(Val::U64),
        // The nearest one there is; what is too large for it is infinite.
        (Type::Float32, json) => float(&json, at).map(|value| Val::Float32(value as f32)),
        (Type::Float64, json) => float(&json, at).map(Val::Float64),
        (Type::Char, Value::String(text)) => {
            let mut all = text.chars();
            match (all.next(), all.next()) {
                (Some(one), None) => Ok(Val::Char(one)),
                _ => wrong("one character"),
            }
        }
        (Type::Char, _) => wrong("one character"),
        (Type::String, Value::String(text)) => Ok(Val::String(text)),
        (Type::String, _) => wrong("a text"),
        (Type::List(list), json) => match (list.ty(), json) {
            (Type::U8, Value::String(text)) => match STANDARD.decode(text) {
                Ok(bytes) => {
                    room.take(bytes.len().saturating_mul(size_of::<Val>()), at)?;
                    Ok(Val::List(bytes.into_iter().map(Val::U8).collect()))
                }
                Err(error) => Err(format!("{at} has to be in base64: {error}")),
            },
            (Type::U8, _) => wrong("a text in base64"),
            (item, Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                items
                    .map(|(n, json)| value(&item, json, &format!("{at}/{n}"), room))
                    .collect::<Result<_, _>>()
                    .map(Val::List)
            }
            _ => wrong("an array"),
        },
        (Type::Record(record), Value::Object(mut object)) => {
            let all: Vec<(String, Type)> = record.fields().map(|field| (field.name.to_owned(), field.ty)).collect();
            fields(&all, &mut object, at, room).map(Val::Record)
        }
        (Type::Record(_), _) => wrong("an object"),
        (Type::Tuple(tuple), Value::Array(items)) if items.len() == tuple.types().len() => {
            let pairs = tuple.types().zip(items).enumerate();
            pairs
                .map(|(n, (ty, json))| value(&ty, json, &format!("{at}/{n}"), room))
                .collect::<Result<_, _>>()
                .map(Val::Tuple)
        }
        (Type::Tuple(tuple), _) => wrong(&format!("an array of {}", tuple.types().len())),
        (Type::Variant(variant), json) => {
            let (name, payload) = case(json, at)?;
            let Some(found) = variant.cases().find(|case| case.name == name) else {
                let names: Vec<&str> = variant.cases().map(|case| case.name).collect();
                return wrong(&format!("one of the cases {}", names.join(", ")));
            };
            match (found.ty, payload) {
                (None, None) => Ok(Val::Variant(name, None)),
                (Some(ty), Some(payload)) => {
                    let payload = value(&ty, payload, &format!("{at}/{name}"), room)?;
                    Ok(Val::Variant(name, Some(Box::new(payload))))
                }
                (None, Some(_)) => wrong(&format!("{name:?} alone, which has no value")),
                (Some(_), None) => wrong(&format!("an object with {name:?}, which has a value")),
            }
        }
        (Type::Enum(all), Value::String(name)) if all.names().any(|known| known == name) => Ok(Val::Enum(name)),
        (Type::Enum(all), _) => wrong(&format!("one of {}", all.names().collect::<Vec<_>>().join(", "))),
        (Type::Option(_), Value::Null) => Ok(Val::Option(None)),
        (Type::Option(option), json) => {
            let inner = match (option.ty(), json) {
                (ty @ Type::Option(_), Value::Object(mut object))
                    if object.len() == 1 && object.contains_key("some") =>
                {
                    value(&ty, object.remove("some").unwrap_or_default(), &format!("{at}/some"), room)?
                }
                (Type::Option(_), _) => return wrong("null or an object with \"some\""),
                (ty, json) => value(&ty, json, at, room)?,
            };
            Ok(Val::Option(Some(Box::new(inner))))
        }
        (Type::Result(result), json) => {
            let (name, payload) = case(json, at)?;
            let (ty, is_ok) = match name.as_str() {
                "ok" => (result.ok(), true),
                "err" => (result.err(), false),
                _ => return wrong("an object with \"ok\" or \"err\""),
            };
            let payload = match (ty, payload) {
                (None, None | Some(Value::Null)) => None,
                (None, Some(_)) => return wrong(&format!("{{\"{name}\": null}}, which has no value")),
                (Some(ty), payload) => {
                    let payload = value(&ty, payload.unwrap_or_default(), &format!("{at}/{name}"), room)?;
                    Some(Box::new(payload))
                }
            };
            Ok(Val::Result(if is_ok { Ok(payload) } else { Err(payload) }))
        }
        (Type::Flags(flags), Value::Array(names)) => {
            let mut all = Vec::with_capacity(names.len());
            for name in names {
                match name {
                    Value::String(name) if flags.names().any(|known| known == name) => all.push(name),
                    _ => return wrong(&format!("an array of {}", flags.names().collect::<Vec<_>>().join(", "))),
                }
            }
            all.sort_unstable();
            all.dedup();
            Ok(Val::Flags(all))
        }
        (Type::Flags(_), _) => wrong("an array"),
        // Functions with others are no tools.
        _ => wrong("nothing: it cannot be written"),
    }
}

/// The case of a variant: its name, or an object with its name and its value.
fn case(json: Value, at: &str) -> Result<(String, Option<Value>), String> {
    match json {
        Value::String(name) => Ok((name, None)),
        Value::Object(object) if object.len() == 1 => {
            let one = object.into_iter().next();
            one.map(|(name, payload)| (name, Some(payload))).ok_or_else(|| format!("{at} is empty"))
        }
        _ => Err(format!("{at} has to be the name of a case, or an object with it alone")),
    }
}

/// An integer, as a number or in decimal digits.
fn integer<T: TryFrom<i128>>(json: &Value, at: &str) -> Result<T, String> {
    let digits = match json {
        // A whole number may be written as a fraction; larger ones would have been rounded.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= (1_u64 << 53) as f64 => {
                (float as i64).to_string()
            }
            _ => number.to_string(),
        },
        Value::String(digits) => digits.clone(),
        _ => return Err(format!("{at} has to be an integer")),
    };
    let integer: i128 = digits.parse().map_err(|_| format!("{at} has to be an integer, and is {digits:.40}"))?;
    T::try_from(integer).map_err(|_| format!("{at} is out of range: {integer}"))
}

fn float(json: &Value, at: &str) -> Result<f64, String> {
    match json {
        Value::Number(number) => number.as_f64().ok_or_else(|| format!("{at} is out of range")),
        Value::String(name) => match name.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(format!("{at} has to be a number")),
        },
        _ => Err(format!("{at} has to be a number")),
    }
}
