//! `/metrics`: counters, and gauges that are read from the status snapshot at each scrape.

mod counters;
mod gauges;

use std::fmt;
use std::time::SystemTime;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, prometheus_text,
};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::api::traffic::Traffic;
use crate::status::Status;
pub use counters::Counters;

/// The type of the page. Every scraper accepts this format.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

#[derive(Debug)]
pub struct Metrics(Registry);

impl Metrics {
    pub fn new(
        traffic: &Traffic,
        status: watch::Receiver<Option<Status>>,
        counters: Counters,
    ) -> Self {
        let mut registry = Registry::default();
        registry.register(
            "untaint_build",
            "The version of the program",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        registry.register(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970",
            ConstGauge::new(started.unwrap_or_default().as_secs_f64()),
        );
        traffic.register(&mut registry);
        registry.register_collector(Box::new(Snapshot { status, counters }));
        Self(registry)
    }

    pub fn page(&self) -> Result<String, fmt::Error> {
        let mut page = String::new();
        prometheus_text::encode(&mut page, &self.0)?;
        Ok(page)
    }
}

/// The metrics of rules and gates. Those of the current configuration have all their series, and others have none.
#[derive(Debug)]
struct Snapshot {
    status: watch::Receiver<Option<Status>>,
    counters: Counters,
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let status = self.status.borrow();
        let Some(status) = status.as_ref() else {
            return Ok(());
        };
        gauges::encode(&mut encoder, status)?;
        self.counters.encode(&mut encoder)
    }
}

/// One metric with all its series.
fn family<L: EncodeLabelSet, M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = (L, M)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for (labels, metric) in series {
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
