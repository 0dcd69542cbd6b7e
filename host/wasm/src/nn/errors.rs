//! The interface `errors`.

use nala_nn::{Code, Error};
use wasmtime::Result;
use wasmtime::component::Resource;

use super::NnView;
use super::bindings::wasi::nn::errors::{ErrorCode, Host, HostError};
use crate::llm;

/// An error that a guest can look at.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct ErrorHandle(pub(super) Error);

impl Host for NnView<'_> {}

impl HostError for NnView<'_> {
    fn code(&mut self, error: Resource<ErrorHandle>) -> Result<ErrorCode> {
        Ok(match self.llm.table.get(&error)?.0.code() {
            Code::InvalidArgument => ErrorCode::InvalidArgument,
            Code::InvalidEncoding => ErrorCode::InvalidEncoding,
            Code::Timeout => ErrorCode::Timeout,
            Code::RuntimeError => ErrorCode::RuntimeError,
            Code::UnsupportedOperation => ErrorCode::UnsupportedOperation,
            Code::TooLarge => ErrorCode::TooLarge,
            Code::NotFound => ErrorCode::NotFound,
            Code::Security => ErrorCode::Security,
        })
    }

    fn data(&mut self, error: Resource<ErrorHandle>) -> Result<String> {
        Ok(self.llm.table.get(&error)?.0.to_string())
    }

    fn drop(&mut self, error: Resource<ErrorHandle>) -> Result<()> {
        self.llm.table.delete(error)?;
        Ok(())
    }
}

/// An error of a model in this interface's codes.
pub(super) fn of_model(error: &llm::Error) -> Error {
    use llm::Error as Llm;
    let code = match error {
        Llm::InvalidArgument(_) | Llm::Constraint(_) => Code::InvalidArgument,
        Llm::Unsupported(_) => Code::UnsupportedOperation,
        Llm::NotFound(_) => Code::NotFound,
        Llm::Denied(_) => Code::Security,
        Llm::ContextFull(_) | Llm::Quota(_) => Code::TooLarge,
        Llm::Busy | Llm::Deadline => Code::Timeout,
        Llm::Cancelled | Llm::Evicted | Llm::Backend(_) => Code::RuntimeError,
    };
    Error::new(code, llm::words(error))
}
