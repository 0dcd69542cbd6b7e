//! What of the process is in RAM, read when metrics are asked for.

use std::fmt::Error;

use nala_machine::{RealFilesystem, Resident};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The gauges `process_resident_memory_bytes{pages=…}`: all pages, all with shared
/// ones counted in part, those of no file, and those of files. Together they tell a
/// model that is mapped from one that was copied, and both from one that is in RAM
/// twice.
#[derive(Debug)]
pub(super) struct ResidentMemory;

impl Collector for ResidentMemory {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        // Other systems than Linux do not tell.
        let Some(resident) = Resident::read(&RealFilesystem) else { return Ok(()) };
        let mut family = encoder.encode_descriptor(
            "process_resident_memory",
            "Memory of this process that is in RAM, by kind of page",
            Some(&Unit::Bytes),
            MetricType::Gauge,
        )?;
        let kinds = [
            ("all", resident.all_bytes),
            ("proportional", resident.proportional_bytes),
            ("anonymous", resident.anonymous_bytes),
            ("file", resident.file_bytes),
        ];
        for (pages, bytes) in kinds {
            ConstGauge::new(bytes).encode(family.encode_family(&[("pages", pages)])?)?;
        }
        Ok(())
    }
}
