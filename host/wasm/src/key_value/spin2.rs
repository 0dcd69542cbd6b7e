//! `fermyon:spin/key-value@2.0.0`.

use wasmtime::Result;
use wasmtime::component::{Linker, Resource};

use super::{Bucket, HasKeyValue, KeyValueView, Refused, view};
use crate::store::StoreData;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/fermyon-spin",
        inline: "package nala:key-value; world imports { import fermyon:spin/key-value@2.0.0; }",
        world: "nala:key-value/imports",
        imports: {
            "fermyon:spin/key-value.[static]store.open": trappable,
            default: async | trappable,
        },
        require_store_data_send: true,
        with: { "fermyon:spin/key-value.store": crate::key_value::Bucket },
    });
}

use bindings::fermyon::spin::key_value::{self, Error};

pub(super) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    key_value::add_to_linker::<_, HasKeyValue>(linker, view)
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::TableFull => Self::StoreTableFull,
            Refused::Denied => Self::AccessDenied,
            Refused::NoSuchStore => Self::NoSuchStore,
            Refused::Other(text) => Self::Other(text),
        }
    }
}

impl key_value::Host for KeyValueView<'_> {}

impl key_value::HostStore for KeyValueView<'_> {
    fn open(&mut self, label: String) -> Result<Result<Resource<Bucket>, Error>> {
        Ok(self.open(&label).map_err(Error::from))
    }

    async fn get(&mut self, store: Resource<Bucket>, key: String) -> Result<Result<Option<Vec<u8>>, Error>> {
        let store = self.table.get(&store)?;
        Ok(store.get(key).await.map_err(Error::from))
    }

    async fn set(&mut self, store: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<Result<(), Error>> {
        let store = self.table.get(&store)?;
        Ok(store.set(key, value).await.map_err(Error::from))
    }

    async fn delete(&mut self, store: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        let store = self.table.get(&store)?;
        Ok(store.delete(key).await.map_err(Error::from))
    }

    async fn exists(&mut self, store: Resource<Bucket>, key: String) -> Result<Result<bool, Error>> {
        let store = self.table.get(&store)?;
        Ok(store.exists(key).await.map_err(Error::from))
    }

    async fn get_keys(&mut self, store: Resource<Bucket>) -> Result<Result<Vec<String>, Error>> {
        let store = self.table.get(&store)?;
        Ok(store.keys().await.map_err(Error::from))
    }

    async fn drop(&mut self, store: Resource<Bucket>) -> Result<()> {
        self.table.delete(store)?;
        Ok(())
    }
}
