//! `wasi:keyvalue/batch.get-many` as Spin has it.
//!
//! Two shapes go by the name of `wasi:keyvalue@0.2.0-draft2`: the proposal's, where
//! what is not there is none, and that of Spin's copy, where its key is there
//! without a value. A component is linked with the one that it was built for.

use wasmtime::component::types::{ComponentItem, Type};
use wasmtime::component::{Component, Linker, Resource};
use wasmtime::{Engine, Result, StoreContextMut};

use super::wasi::Error;
use super::{Bucket, view};
use crate::store::StoreData;

const INTERFACE: &str = "wasi:keyvalue/batch@0.2.0-draft2";
const GET_MANY: &str = "get-many";

/// Replaces the function by Spin's if the component was built for that. The linker
/// must allow shadowing.
pub(crate) fn fit(linker: &mut Linker<StoreData>, component: &Component) -> Result<()> {
    if !is_spins(component, linker.engine()).unwrap_or(false) {
        return Ok(());
    }
    type Asked = (Resource<Bucket>, Vec<String>);
    linker.instance(INTERFACE)?.func_wrap_async(GET_MANY, |mut store: StoreContextMut<'_, StoreData>, asked: Asked| {
        Box::new(async move {
            let (bucket, keys) = asked;
            let bucket = view(store.data_mut()).table.get(&bucket)?.clone();
            Ok((bucket.get_many(keys).await.map_err(Error::from),))
        })
    })
}

/// Whether the component imports the function with Spin's result. None: it does
/// not import it.
fn is_spins(component: &Component, engine: &Engine) -> Option<bool> {
    let component = component.component_type();
    let ComponentItem::ComponentInstance(batch) = component.get_import(engine, INTERFACE)?.ty else { return None };
    let ComponentItem::ComponentFunc(get_many) = batch.get_export(engine, GET_MANY)?.ty else { return None };
    let Some(Type::Result(result)) = get_many.results().next() else { return None };
    let Some(Type::List(list)) = result.ok() else { return None };
    Some(matches!(list.ty(), Type::Tuple(_)))
}
