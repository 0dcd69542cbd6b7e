//! Runs WebAssembly components that answer HTTP requests, with the model as an
//! import.
//!
//! A [`Runtime`] owns the wasmtime engine. [`Runtime::compile`] compiles a
//! component, [`Runtime::load`] links it with what it is granted ([`Grant`]) into
//! an [`App`], and [`App::handle`] answers one request with a fresh instance, under the
//! component's [`Limits`]. Every limit ends in a typed [`HandleError`] for that
//! request and in nothing for the others.
//!
//! The crate knows neither sockets nor model formats. What a component may
//! import stands in one module for each capability. Each is always linked, and
//! what is not granted ([`Capabilities`]) is refused with the interface's own
//! error, or at load where it has none.

mod account;
mod body;
mod cache;
mod capabilities;
mod chat;
mod clocks;
mod control;
mod cpu;
mod engine;
mod error;
mod files;
mod handler;
mod key_value;
mod limits;
mod llm;
mod load;
mod logging;
mod memory;
mod metrics;
mod nn;
mod outbound;
mod outcome;
mod outflow;
mod relay;
mod secret;
mod setback;
mod spin_llm;
mod stdio;
mod store;
mod telemetry;
mod threads;
mod tick;
mod tools;
mod turns;
mod variables;
mod worker;

pub use body::{BodyError, ResponseBody};
pub use cache::CompileCache;
pub use capabilities::{Capabilities, GrantError, Own};
pub use chat::renderer::Renderer;
pub use clocks::Clocks;
pub use engine::{Runtime, RuntimeConfig, StartError, open_pagemap};
pub use error::HandleError;
pub use files::{Access, Asset, AssetLimit, Files, FilesError, Folder};
pub use handler::{App, Instantiation};
pub use limits::{KvLimit, LimitEntry, Limits};
pub use load::{
    Compiled, Grant, LoadError, MAX_COMPONENT_BYTES, Offer, Offered, Prospect, Role, SharedLimits, Source,
    read_component,
};
pub use metrics::{OutcomeLabel, RuntimeMetrics};
pub use outbound::{Callee, Chain, ChainError, Chained, GuestBody, Outbound};
pub use secret::Secret;
pub use telemetry::Telemetry;
pub use tools::bindings::nala::tools::types::{
    Abilities, Annotations, Answer, Body, Catalogue, Content, Contents, Error as ToolError, Inquiry, Link, Media,
    Parameter, Pattern, Progress, Prompt, Severity, Tool,
};
pub use tools::elsewhere::{Elsewhere, ElsewhereCall, Teller, call_elsewhere};
pub use tools::keyed::Keyed;
pub use tools::provider::{Owning, Provider};
pub use tools::toolbox::{NameTaken, Toolbox};
