//! Model files made by the code that the tests of `nala-llama` make theirs with.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::expect_used,
    clippy::panic,
    reason = "a part of it is used here, and these are tests"
)]

#[path = "../../host/llama/tests/common/gguf.rs"]
pub(crate) mod gguf;
#[path = "../../host/llama/tests/common/made.rs"]
#[allow(clippy::module_inception, reason = "it is named for what it is")]
pub(crate) mod made;

use nala_e2e::paths::model as model_path;
