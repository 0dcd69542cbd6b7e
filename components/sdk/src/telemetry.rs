//! What the machine is and does, and what its models do.
//!
//! Only for components that are granted it, by `telemetry = true` under
//! `[component.NAME.tool.nala]`. All who ask share a reading of a tenth of a second, so that
//! asking more often shows nothing more; tenants are shown one of a second, rounded.
//!
//! ```no_run
//! use nala_sdk::telemetry;
//!
//! let load = telemetry::load()?;
//! if let Some(cpus) = &load.cpu_use {
//!     println!("{:.0} % busy", cpus.busy * 100.0);
//! }
//! # Ok::<(), telemetry::Error>(())
//! ```

use crate::bindings::nala::machine::telemetry as host;

pub use crate::bindings::nala::machine::telemetry::{
    Cache, CacheKind, ClockRate, CpuTimes, CpuUse, Energy, EnergyCounter, EnergyReading, EnergyScope, EnergySensor,
    Error, GroupCpu, Load, LoadAverages, Machine, MemoryUse, Model, ModelState, NumaNode, Pressure, Temperature,
    Waited,
};

/// What the machine has, which does not change.
///
/// # Errors
/// The component is not granted it, or it cannot be read.
pub fn machine() -> Result<Machine, Error> {
    host::get_machine()
}

/// How much the machine has to do. The first reading after a while takes 200 milliseconds.
///
/// # Errors
/// The component is not granted it, or it cannot be read.
pub fn load() -> Result<Load, Error> {
    host::get_load()
}

/// What the models do that this component may know of.
///
/// # Errors
/// The component is not granted it.
pub fn models() -> Result<Vec<Model>, Error> {
    host::get_models()
}
