//! What tenants use and hold, for `/metrics`.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;

use super::Tenancy;

/// Reads the counters of all tenants when somebody asks for them.
#[derive(Clone)]
pub(crate) struct TenantMetrics(pub(crate) Tenancy);

impl fmt::Debug for TenantMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TenantMetrics")
    }
}

impl Collector for TenantMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Tenancy::Declared(directory, _) = &self.0 else { return Ok(()) };
        let mut used = encoder.encode_descriptor(
            "tenant_used",
            "What components of tenants have used",
            None,
            MetricType::Counter,
        )?;
        for sample in directory.samples() {
            let labels = [
                ("tenant", sample.tenant.as_str().to_owned()),
                ("component", sample.component.to_string()),
                ("what", sample.counter.name().to_owned()),
            ];
            let value = prometheus_client::metrics::counter::ConstCounter::new(sample.value);
            value.encode(used.encode_family(&labels)?)?;
        }
        let mut held =
            encoder.encode_descriptor("tenant_held", "What tenants hold at the moment", None, MetricType::Gauge)?;
        for (tenant, stock, amount, _limit) in directory.levels() {
            // Those of a class hold what they hold in its process.
            if self.0.class_of(tenant.as_str()).is_some() {
                continue;
            }
            let what = nala_tenant::Limit::Stock(stock).row().name.to_owned();
            let labels = [("tenant", tenant.as_str().to_owned()), ("what", what)];
            let amount = i64::try_from(amount).unwrap_or(i64::MAX);
            prometheus_client::metrics::gauge::ConstGauge::new(amount).encode(held.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
