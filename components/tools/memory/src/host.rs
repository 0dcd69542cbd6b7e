//! The store that the host gives.

#[cfg(target_family = "wasm")]
pub(crate) use component::open;

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::open;

#[cfg(target_family = "wasm")]
mod component {
    use super::bindings::wasi::keyvalue::store::{self, Bucket};
    use crate::store::{Error, Store};

    /// Which of the component's stores it is.
    const LABEL: &str = "default";

    pub(crate) fn open() -> Result<Bucket, Error> {
        Ok(store::open(LABEL)?)
    }

    impl From<store::Error> for Error {
        fn from(error: store::Error) -> Self {
            match error {
                store::Error::NoSuchStore => Self::NoSuchStore,
                store::Error::AccessDenied => Self::Denied,
                store::Error::Other(why) => Self::Other(why),
            }
        }
    }

    impl Store for Bucket {
        fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
            Ok(Bucket::get(self, key)?)
        }

        fn exists(&self, key: &str) -> Result<bool, Error> {
            Ok(Bucket::exists(self, key)?)
        }

        fn set(&self, key: &str, value: &[u8]) -> Result<(), Error> {
            Ok(Bucket::set(self, key, value)?)
        }

        fn delete(&self, key: &str) -> Result<(), Error> {
            Ok(Bucket::delete(self, key)?)
        }

        fn keys(&self, cursor: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
            let page = self.list_keys(cursor.as_deref())?;
            Ok((page.keys, page.cursor))
        }
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    use std::convert::Infallible;

    use crate::store::{Error, Store};

    /// There is no host here to ask.
    pub(crate) fn open() -> Result<Infallible, Error> {
        Err(Error::NoSuchStore)
    }

    impl Store for Infallible {
        fn get(&self, _: &str) -> Result<Option<Vec<u8>>, Error> {
            match *self {}
        }

        fn exists(&self, _: &str) -> Result<bool, Error> {
            match *self {}
        }

        fn set(&self, _: &str, _: &[u8]) -> Result<(), Error> {
            match *self {}
        }

        fn delete(&self, _: &str) -> Result<(), Error> {
            match *self {}
        }

        fn keys(&self, _: Option<String>) -> Result<(Vec<String>, Option<String>), Error> {
            match *self {}
        }
    }
}

/// What wit-bindgen makes of the store.
#[cfg(target_family = "wasm")]
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package nala:tool-memory;

            world memory {
                import wasi:keyvalue/store@0.2.0-draft2;
            }
        ",
        path: "../../../wit/wasi-keyvalue",
        generate_all,
    });
}
