//! `spin:key-value@3.0.0`, whose functions are asynchronous for the guest too.

use wasmtime::Result;
use wasmtime::component::{Accessor, FutureReader, Linker, Resource, StreamReader};

use super::{Bucket, HasKeyValue, KeyValueView, Refused, view};
use crate::store::StoreData;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/spin-key-value",
        inline: "package nala:key-value; world imports { import spin:key-value/key-value@3.0.0; }",
        world: "nala:key-value/imports",
        imports: { default: trappable },
        require_store_data_send: true,
        with: { "spin:key-value/key-value.store": crate::key_value::Bucket },
    });
}

use bindings::spin::key_value::key_value::{self, Error};

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

/// A handle on an open store, which is used while the guest goes on.
fn bucket<T>(accessor: &Accessor<T, HasKeyValue>, store: &Resource<Bucket>) -> Result<Bucket> {
    accessor.with(|mut access| Ok(access.get().table.get(store)?.clone()))
}

impl key_value::Host for KeyValueView<'_> {}

impl key_value::HostStore for KeyValueView<'_> {
    fn drop(&mut self, store: Resource<Bucket>) -> Result<()> {
        self.table.delete(store)?;
        Ok(())
    }
}

/// All keys, and how reading them ended.
type Keys = (StreamReader<String>, FutureReader<Result<(), Error>>);

impl<T: Send + 'static> key_value::HostStoreWithStore<T> for HasKeyValue {
    async fn open(accessor: &Accessor<T, Self>, label: String) -> Result<Result<Resource<Bucket>, Error>> {
        Ok(accessor.with(|mut access| access.get().open(&label)).map_err(Error::from))
    }

    async fn get(
        accessor: &Accessor<T, Self>,
        store: Resource<Bucket>,
        key: String,
    ) -> Result<Result<Option<Vec<u8>>, Error>> {
        Ok(bucket(accessor, &store)?.get(key).await.map_err(Error::from))
    }

    async fn set(
        accessor: &Accessor<T, Self>,
        store: Resource<Bucket>,
        key: String,
        value: Vec<u8>,
    ) -> Result<Result<(), Error>> {
        Ok(bucket(accessor, &store)?.set(key, value).await.map_err(Error::from))
    }

    async fn delete(accessor: &Accessor<T, Self>, store: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        Ok(bucket(accessor, &store)?.delete(key).await.map_err(Error::from))
    }

    async fn exists(accessor: &Accessor<T, Self>, store: Resource<Bucket>, key: String) -> Result<Result<bool, Error>> {
        Ok(bucket(accessor, &store)?.exists(key).await.map_err(Error::from))
    }

    async fn get_keys(accessor: &Accessor<T, Self>, store: Resource<Bucket>) -> Result<Keys> {
        let (keys, end) = match bucket(accessor, &store)?.keys().await {
            Ok(keys) => (keys, Ok(())),
            Err(refused) => (Vec::new(), Err(Error::from(refused))),
        };
        accessor.with(|mut access| {
            let keys = StreamReader::new(&mut access, keys)?;
            let end = FutureReader::new(&mut access, async move { Ok::<_, wasmtime::Error>(end) })?;
            Ok((keys, end))
        })
    }
}
