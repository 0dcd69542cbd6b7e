//! `wasi:keyvalue@0.2.0-draft2`. wasmtime's own implementation has an older draft,
//! which answers at once, from memory.

use wasmtime::Result;
use wasmtime::component::{Linker, Resource};

use super::{Bucket, CasHandle, HasKeyValue, KeyValueView, Refused, view};
use crate::store::StoreData;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit/wasi-keyvalue",
        world: "wasi:keyvalue/imports",
        imports: {
            "wasi:keyvalue/store.open": trappable,
            default: async | trappable,
        },
        require_store_data_send: true,
        with: {
            "wasi:keyvalue/store.bucket": crate::key_value::Bucket,
            "wasi:keyvalue/atomics.cas": crate::key_value::CasHandle,
        },
    });
}

use bindings::wasi::keyvalue::atomics::{self, CasError};
use bindings::wasi::keyvalue::batch;
pub(super) use bindings::wasi::keyvalue::store::Error;
use bindings::wasi::keyvalue::store::{self, KeyResponse};

pub(super) fn add_to_linker(linker: &mut Linker<StoreData>) -> Result<()> {
    store::add_to_linker::<_, HasKeyValue>(linker, view)?;
    atomics::add_to_linker::<_, HasKeyValue>(linker, view)?;
    batch::add_to_linker::<_, HasKeyValue>(linker, view)
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Denied => Self::AccessDenied,
            Refused::NoSuchStore => Self::NoSuchStore,
            Refused::TableFull => Self::Other("too many handles are open: drop some".to_owned()),
            Refused::Other(text) => Self::Other(text),
        }
    }
}

impl store::Host for KeyValueView<'_> {
    fn open(&mut self, identifier: String) -> Result<Result<Resource<Bucket>, Error>> {
        Ok(self.open(&identifier).map_err(Error::from))
    }
}

impl store::HostBucket for KeyValueView<'_> {
    async fn get(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<Option<Vec<u8>>, Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.get(key).await.map_err(Error::from))
    }

    async fn set(&mut self, bucket: Resource<Bucket>, key: String, value: Vec<u8>) -> Result<Result<(), Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.set(key, value).await.map_err(Error::from))
    }

    async fn delete(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<(), Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.delete(key).await.map_err(Error::from))
    }

    async fn exists(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<bool, Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.exists(key).await.map_err(Error::from))
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<Bucket>,
        cursor: Option<String>,
    ) -> Result<Result<KeyResponse, Error>> {
        let bucket = self.table.get(&bucket)?;
        let page = bucket.page(cursor).await.map_err(Error::from);
        Ok(page.map(|page| KeyResponse { keys: page.keys, cursor: page.cursor }))
    }

    async fn drop(&mut self, bucket: Resource<Bucket>) -> Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::Host for KeyValueView<'_> {
    async fn increment(&mut self, bucket: Resource<Bucket>, key: String, delta: i64) -> Result<Result<i64, Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.increment(key, delta).await.map_err(Error::from))
    }

    async fn swap(&mut self, cas: Resource<CasHandle>, value: Vec<u8>) -> Result<Result<(), CasError>> {
        let cas = self.table.delete(cas)?;
        let error = match cas.swap(value).await {
            Ok(None) => return Ok(Ok(())),
            Ok(Some(again)) => match self.table.push(again) {
                Ok(again) => CasError::CasFailed(again),
                Err(_) => CasError::StoreError(Refused::TableFull.into()),
            },
            Err(refused) => CasError::StoreError(refused.into()),
        };
        Ok(Err(error))
    }
}

impl atomics::HostCas for KeyValueView<'_> {
    async fn new(&mut self, bucket: Resource<Bucket>, key: String) -> Result<Result<Resource<CasHandle>, Error>> {
        let bucket = self.table.get(&bucket)?.clone();
        let cas = match bucket.cas(key).await {
            Ok(cas) => self.table.push(cas).map_err(|_| Refused::TableFull),
            Err(refused) => Err(refused),
        };
        Ok(cas.map_err(Error::from))
    }

    async fn current(&mut self, cas: Resource<CasHandle>) -> Result<Result<Option<Vec<u8>>, Error>> {
        let cas = self.table.get_mut(&cas)?;
        Ok(cas.current().await.map_err(Error::from))
    }

    async fn drop(&mut self, cas: Resource<CasHandle>) -> Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl batch::Host for KeyValueView<'_> {
    async fn get_many(
        &mut self,
        bucket: Resource<Bucket>,
        keys: Vec<String>,
    ) -> Result<Result<Vec<Option<(String, Vec<u8>)>>, Error>> {
        let bucket = self.table.get(&bucket)?;
        let found = bucket.get_many(keys).await.map_err(Error::from);
        let there = |(key, value): (String, Option<Vec<u8>>)| value.map(|value| (key, value));
        Ok(found.map(|found| found.into_iter().map(there).collect()))
    }

    async fn set_many(
        &mut self,
        bucket: Resource<Bucket>,
        key_values: Vec<(String, Vec<u8>)>,
    ) -> Result<Result<(), Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.set_many(key_values).await.map_err(Error::from))
    }

    async fn delete_many(&mut self, bucket: Resource<Bucket>, keys: Vec<String>) -> Result<Result<(), Error>> {
        let bucket = self.table.get(&bucket)?;
        Ok(bucket.delete_many(keys).await.map_err(Error::from))
    }
}
