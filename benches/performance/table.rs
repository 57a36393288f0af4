//! The table in Markdown.

/// One row: a measure and its result.
pub(crate) struct Row {
    measure: String,
    result: String,
    /// The ratio to the base.
    ratio: Option<f64>,
    target: Option<Target>,
}

/// The target, and whether the result meets it.
pub(crate) struct Target {
    text: String,
    is_met: bool,
}

impl Target {
    pub(crate) fn new(is_met: bool, text: String) -> Self {
        Self { text, is_met }
    }

    pub(crate) fn at_most(value: f64, limit: f64, unit: &str) -> Self {
        Self::new(value <= limit, format!("≤ {limit} {unit}"))
    }
}

impl Row {
    pub(crate) fn new(measure: &str, result: String) -> Self {
        Self {
            measure: measure.to_owned(),
            result,
            ratio: None,
            target: None,
        }
    }

    pub(crate) fn ratio(mut self, ratio: f64) -> Self {
        self.ratio = Some(ratio);
        self
    }

    pub(crate) fn target(mut self, target: Target) -> Self {
        self.target = Some(target);
        self
    }

    pub(crate) fn is_missed(&self) -> bool {
        self.target.as_ref().is_some_and(|target| !target.is_met)
    }
}

pub(crate) fn markdown(rows: &[Row]) -> String {
    let head = "| measure | result | × base | target | |\n|---|---|---|---|---|".to_owned();
    let lines = rows.iter().map(|row| {
        let ratio = row
            .ratio
            .map(|ratio| format!("{ratio:.2}"))
            .unwrap_or_default();
        let (target, verdict) = match &row.target {
            Some(target) => (
                target.text.as_str(),
                if target.is_met { "ok" } else { "MISSED" },
            ),
            None => ("", ""),
        };
        format!(
            "| {} | {} | {ratio} | {target} | {verdict} |",
            row.measure, row.result
        )
    });
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
}
