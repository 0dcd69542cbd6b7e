//! The interface `tensor`, and what tensors may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nala_nn::{Code, Element, Error, Tensor};
use nala_tenant::Stock;
use wasmtime::Result;
use wasmtime::component::Resource;

use super::NnView;
use super::bindings::wasi::nn::tensor::{Host, HostTensor, TensorType};
use crate::account::{Account, Holding};
use crate::limits;

/// Bytes that the tensors of a store hold.
#[derive(Debug, Default)]
pub(crate) struct NnState {
    tensor_bytes: Arc<AtomicU64>,
}

/// A tensor's part of what the store may hold, given back by being dropped.
pub(super) struct Held {
    all: Arc<AtomicU64>,
    bytes: u64,
    /// The same of what the host holds for the account.
    _of_account: Holding,
}

impl Held {
    fn take(state: &NnState, account: &Account, tensor: &Tensor, max: u64) -> Result<Self, Error> {
        let bytes = tensor.data().len() as u64;
        let all = &state.tensor_bytes;
        let held = all.load(Ordering::Relaxed);
        if held.saturating_add(bytes) > max {
            return Err(Error::new(
                Code::TooLarge,
                format!(
                    "a tensor of {bytes} bytes does not fit beside those that are held: they have {held} bytes of {}; \
                     drop some, or make it smaller",
                    limits::bytes(max)
                ),
            ));
        }
        let of_account = account
            .hold(Stock::HostBytes, bytes)
            .map_err(|exceeded| Error::new(Code::TooLarge, exceeded.to_string()))?;
        all.fetch_add(bytes, Ordering::Relaxed);
        Ok(Self { all: Arc::clone(all), bytes, _of_account: of_account })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A tensor that a guest holds. The constructor can tell no error, so one that was
/// refused holds nothing and says why where it is used.
#[expect(unreachable_pub, reason = "the generated code re-exports it")]
pub struct TensorHandle {
    element: Element,
    tensor: Result<(Tensor, Held), Error>,
}

impl TensorHandle {
    /// A tensor, and its part of what the store may hold.
    pub(super) fn into_tensor(self) -> Result<(Tensor, Held), Error> {
        self.tensor
    }
}

impl NnView<'_> {
    /// Gives the guest a tensor of the host's.
    pub(super) fn give(&mut self, tensor: Tensor) -> Result<Result<Resource<TensorHandle>, Error>> {
        match Held::take(self.state, &self.llm.state.account, &tensor, self.llm.limits.tensor_bytes) {
            Ok(held) => {
                let element = tensor.element();
                Ok(Ok(self.llm.table.push(TensorHandle { element, tensor: Ok((tensor, held)) })?))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

impl Host for NnView<'_> {}

impl HostTensor for NnView<'_> {
    fn new(&mut self, dimensions: Vec<u32>, ty: TensorType, data: Vec<u8>) -> Result<Resource<TensorHandle>> {
        let element = element(ty);
        let most = self.llm.limits.tensor_bytes;
        let account = &self.llm.state.account;
        let tensor = Tensor::new(dimensions, element, data)
            .and_then(|tensor| Held::take(self.state, account, &tensor, most).map(|held| (tensor, held)));
        Ok(self.llm.table.push(TensorHandle { element, tensor })?)
    }

    fn dimensions(&mut self, tensor: Resource<TensorHandle>) -> Result<Vec<u32>> {
        let tensor = &self.llm.table.get(&tensor)?.tensor;
        Ok(tensor.as_ref().map(|(tensor, _)| tensor.dimensions().to_vec()).unwrap_or_default())
    }

    fn ty(&mut self, tensor: Resource<TensorHandle>) -> Result<TensorType> {
        Ok(match self.llm.table.get(&tensor)?.element {
            Element::Fp16 => TensorType::Fp16,
            Element::Fp32 => TensorType::Fp32,
            Element::Fp64 => TensorType::Fp64,
            Element::Bf16 => TensorType::Bf16,
            Element::U8 => TensorType::U8,
            Element::I32 => TensorType::I32,
            Element::I64 => TensorType::I64,
        })
    }

    fn data(&mut self, tensor: Resource<TensorHandle>) -> Result<Vec<u8>> {
        let tensor = &self.llm.table.get(&tensor)?.tensor;
        Ok(tensor.as_ref().map(|(tensor, _)| tensor.data().to_vec()).unwrap_or_default())
    }

    fn drop(&mut self, tensor: Resource<TensorHandle>) -> Result<()> {
        self.llm.table.delete(tensor)?;
        Ok(())
    }
}

fn element(ty: TensorType) -> Element {
    match ty {
        TensorType::Fp16 => Element::Fp16,
        TensorType::Fp32 => Element::Fp32,
        TensorType::Fp64 => Element::Fp64,
        TensorType::Bf16 => Element::Bf16,
        TensorType::U8 => Element::U8,
        TensorType::I32 => Element::I32,
        TensorType::I64 => Element::I64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_count_together_and_give_back() {
        let state = NnState::default();
        let account = Account::sole();
        let tensor = Tensor::of_bytes(vec![0; 60]);
        let first = Held::take(&state, &account, &tensor, 100).unwrap();
        let refused = Held::take(&state, &account, &tensor, 100).err().unwrap();
        assert_eq!(refused.code(), Code::TooLarge);
        assert!(refused.to_string().contains("60 bytes of 100 bytes"), "{refused}");
        drop(first);
        assert!(Held::take(&state, &account, &tensor, 100).is_ok());
    }
}
