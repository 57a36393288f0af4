//! Repeated measurements of one latency.

use std::fmt;
use std::time::Duration;

/// The samples, in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample.as_secs_f64() * 1000.0);
        self.0.sort_by(f64::total_cmp);
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(1, 2)
    }

    /// The smallest sample such that `part` of `whole` samples are not above it.
    fn quantile(&self, part: usize, whole: usize) -> f64 {
        let rank = (self.0.len() * part).div_ceil(whole);
        self.0
            .get(rank.saturating_sub(1))
            .copied()
            .unwrap_or(f64::NAN)
    }
}

/// Median and 90th percentile.
impl fmt::Display for Samples {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:.1} ms (p90 {:.1})",
            self.median(),
            self.quantile(9, 10)
        )
    }
}
