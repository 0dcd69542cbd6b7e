//! Plain exports as tools: any function of a component that only takes and gives values.
//!
//! What a function takes and gives is told by its types ([`schema`]), and values go
//! between JSON and the component without loss ([`lower`], [`lift`]).

mod lift;
mod lower;
mod schema;

use serde_json::{Value, json};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Type, Val};
use wasmtime::{Result, Store};

use super::bindings::nala::tools::types::{Annotations, Answer, Content, Error, Tool};
use super::describe;
use crate::store::StoreData;

/// The plain exports of a component.
pub(super) struct Plain {
    pre: InstancePre<StoreData>,
    functions: Vec<Function>,
}

/// A function that is a tool.
struct Function {
    name: String,
    index: ComponentExportIndex,
    ty: ComponentFunc,
    /// As people write it, with the interface that it is in.
    path: String,
}

impl Plain {
    /// Those of a component. None: it has none that could be called with values.
    pub(super) fn of(pre: InstancePre<StoreData>) -> Option<Self> {
        let component = pre.component();
        let mut functions = Vec::new();
        let engine = component.engine();
        for (name, item) in component.component_type().exports(engine) {
            match item.ty {
                ComponentItem::ComponentFunc(ty) => functions.extend(function(component, None, name, ty)),
                ComponentItem::ComponentInstance(interface) if !is_of_a_host(name) => {
                    for (function_name, item) in interface.exports(engine) {
                        if let ComponentItem::ComponentFunc(ty) = item.ty {
                            functions.extend(function(component, Some(name), function_name, ty));
                        }
                    }
                }
                _ => {}
            }
        }
        tell_apart(&mut functions);
        // Those of resources, and what is too long to be called.
        functions.retain(|function| describe::check_name(&function.name).is_ok());
        (!functions.is_empty()).then_some(Self { pre, functions })
    }

    /// What the functions are as tools.
    pub(super) fn tools(&self) -> Vec<Tool> {
        let tool = |function: &Function| Tool {
            name: function.name.clone(),
            title: None,
            description: format!("Calls `{}`.", function.path),
            input_schema: schema::of_parameters(&function.ty).to_string(),
            output_schema: schema::of_result(&function.ty).map(|schema| schema.to_string()),
            annotations: Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
        };
        self.functions.iter().map(tool).collect()
    }

    /// Calls the function that is a tool of this name. `began` is told when the instance is
    /// there.
    pub(super) async fn call(
        &self,
        store: &mut Store<StoreData>,
        tool: &str,
        arguments: &str,
        began: impl FnOnce(),
    ) -> Result<Result<Answer, Error>> {
        let Some(function) = self.functions.iter().find(|function| function.name == tool) else {
            return Ok(Err(Error::UnknownTool(format!("there is no tool {tool:?}"))));
        };
        let most = store.data().limits.call_bytes as usize;
        let parameters = match lower::parameters(&function.ty, arguments, most) {
            Ok(parameters) => parameters,
            Err(why) => return Ok(Err(Error::InvalidArguments(why))),
        };
        let instance = self.pre.instantiate_async(&mut *store).await?;
        began();
        let called = instance
            .get_func(&mut *store, function.index)
            .ok_or_else(|| wasmtime::format_err!("`{}` is no function", function.path))?;
        let types: Vec<Type> = function.ty.results().collect();
        let mut results = vec![Val::Bool(false); types.len()];
        called.call_async(&mut *store, &parameters, &mut results).await?;
        Ok(Ok(match (types.first(), results.first()) {
            (Some(Type::Result(ty)), Some(Val::Result(Err(error)))) => {
                failed(lift::side(ty.err().as_ref(), error.as_deref()))
            }
            (Some(Type::Result(ty)), Some(Val::Result(Ok(value)))) => match ty.ok() {
                Some(ok) => answered(lift::side(Some(&ok), value.as_deref())),
                None => nothing(),
            },
            (Some(ty), Some(value)) => answered(lift::value(ty, value)),
            _ => nothing(),
        }))
    }
}

/// Interfaces by which hosts start components, which nobody else calls.
fn is_of_a_host(interface: &str) -> bool {
    interface.starts_with("wasi:")
}

/// A function that takes and gives values alone.
fn function(component: &Component, interface: Option<&str>, name: &str, ty: ComponentFunc) -> Option<Function> {
    if !schema::is_of_values(&ty) {
        return None;
    }
    let within = match interface {
        Some(interface) => Some(component.get_export_index(None, interface)?),
        None => None,
    };
    let index = component.get_export_index(within.as_ref(), name)?;
    let short = interface.map(|interface| {
        let path = interface.split_once('@').map_or(interface, |(path, _)| path);
        path.rsplit_once('/').map_or(path, |(_, name)| name)
    });
    let own = short.map_or_else(|| name.to_owned(), |short| format!("{short}_{name}"));
    let path = interface.map_or_else(|| name.to_owned(), |interface| format!("{interface}#{name}"));
    Some(Function { name: own, index, ty, path })
}

/// Functions of interfaces with the same name get the names of their packages as well.
fn tell_apart(functions: &mut [Function]) {
    let names: Vec<String> = functions.iter().map(|function| function.name.clone()).collect();
    for function in functions {
        if names.iter().filter(|name| **name == function.name).count() > 1 {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let whole: String = function.path.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
            function.name = whole;
        }
    }
}

/// The answer of a function that gives nothing.
fn nothing() -> Answer {
    Answer { content: Vec::new(), structured: None, is_error: false }
}

/// What a function gives, as an answer.
fn answered(value: Value) -> Answer {
    let structured = json!({ "result": value }).to_string();
    Answer { content: vec![Content::Text(text(value))], structured: Some(structured), is_error: false }
}

/// The error that a function gives, as an answer.
fn failed(error: Value) -> Answer {
    let why = if error.is_null() { "it failed".to_owned() } else { text(error) };
    Answer { content: vec![Content::Text(why)], structured: None, is_error: true }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
