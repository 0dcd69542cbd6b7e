//! The component's key-value store `default`, if it was granted one.

#[cfg(target_family = "wasm")]
pub(crate) use component::{get, is_there, random, set};

#[cfg(not(target_family = "wasm"))]
pub(crate) use native::{get, is_there, random, set};

#[cfg(target_family = "wasm")]
mod component {
    use super::bindings::wasi::keyvalue::store::{self, Bucket, Error};

    fn open() -> Result<Bucket, String> {
        store::open("default").map_err(|error| match error {
            Error::NoSuchStore | Error::AccessDenied => {
                "this agent has no store; grant it one with `key_value_stores = [\"default\"]`".to_owned()
            }
            Error::Other(why) => why,
        })
    }

    pub(crate) fn is_there() -> bool {
        open().is_ok()
    }

    pub(crate) fn get(key: &str) -> Result<Option<Vec<u8>>, String> {
        open()?.get(key).map_err(|error| format!("{error:?}"))
    }

    pub(crate) fn set(key: &str, value: &[u8]) -> Result<(), String> {
        open()?.set(key, value).map_err(|error| format!("{error:?}"))
    }

    pub(crate) fn random() -> String {
        let part = nala_sdk::wasi::random::random::get_random_u64;
        format!("{:016x}{:016x}", part(), part())
    }
}

#[cfg(not(target_family = "wasm"))]
mod native {
    const NONE: &str = "there is no host here";

    pub(crate) fn is_there() -> bool {
        false
    }

    pub(crate) fn get(_: &str) -> Result<Option<Vec<u8>>, String> {
        Err(NONE.to_owned())
    }

    pub(crate) fn set(_: &str, _: &[u8]) -> Result<(), String> {
        Err(NONE.to_owned())
    }

    pub(crate) fn random() -> String {
        String::new()
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
            package nala:agent-store;

            world agent {
                import wasi:keyvalue/store@0.2.0-draft2;
            }
        ",
        path: "../../wit/wasi-keyvalue",
        generate_all,
    });
}
