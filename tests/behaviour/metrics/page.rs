//! Reads the page as a scraper does.

use std::collections::BTreeMap;

use testkit::agent::Agent;

/// The page at one moment.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) text: String,
    /// The values, by name and labels as on the page.
    pub(crate) series: BTreeMap<String, String>,
}

impl Page {
    pub(crate) async fn of(agent: &Agent) -> Self {
        let (code, text) = agent.get("/metrics").await.unwrap();
        assert_eq!(code, 200, "{text}");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.to_owned())
        });
        let series = series.collect();
        Self { text, series }
    }

    /// Fails unless the page has these series with these values.
    pub(crate) fn has(&self, expected: &[(&str, &str)]) {
        for (series, value) in expected {
            let found = self.series.get(*series).map(String::as_str);
            assert_eq!(found, Some(*value), "{series} in\n{}", self.text);
        }
    }

    pub(crate) fn number(&self, series: &str) -> f64 {
        self.series[series].parse().unwrap()
    }
}
