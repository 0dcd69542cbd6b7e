//! Counts words. It serves nothing: `components/examples/word-count` has it as a
//! dependency.

#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::undocumented_unsafe_blocks,
    clippy::allow_attributes_without_reason,
    reason = "generated: lifting and lowering across the component boundary is unsafe"
)]
mod bindings {
    wit_bindgen::generate!({ path: "wit", world: "library" });
}

struct Words;

impl bindings::exports::example::words::count::Guest for Words {
    fn words(text: String) -> u32 {
        u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
    }
}

#[allow(unsafe_code, reason = "generated: a function that is called by its name")]
mod export {
    super::bindings::export!(Words with_types_in super::bindings);
    use super::Words;
}
