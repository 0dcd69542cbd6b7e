//! What guests are given and may do, and what they are refused: one program, because each
//! that links wasmtime takes long to build.

#[path = "../common/mod.rs"]
mod common;

mod capabilities;
mod dependencies;
mod embeddings;
mod files;
mod grammars;
mod key_value;
mod model_limits;
mod models;
mod nn;
mod outbound;
mod plain;
mod renderer;
mod spin_llm;
mod steps;
mod telemetry;
mod tools;
