//! The text form of metrics that Prometheus reads, version 0.0.4.

use std::fmt::{Display, Write as _};

use crate::histogram::Histogram;

/// The media type of the text.
pub(super) const MEDIA: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The labels of a sample: names and values.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// The text of the metrics written so far.
#[derive(Default)]
pub(super) struct Exposition {
    text: String,
}

impl Exposition {
    /// Begins a metric whose value goes up and down. Its samples follow.
    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "gauge", help)
    }

    /// Begins a metric whose value only grows; its name ends with `_total`. Its samples follow.
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "counter", help)
    }

    /// Begins a metric of durations; its name ends with `_seconds`. Its samples follow.
    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Family<'_> {
        self.family(name, "histogram", help)
    }

    fn family(&mut self, name: &'static str, kind: &str, help: &str) -> Family<'_> {
        let _written = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { name, text: &mut self.text }
    }

    /// Returns the whole text.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// One metric, whose samples are added here.
pub(super) struct Family<'e> {
    name: &'static str,
    text: &'e mut String,
}

impl Family<'_> {
    /// Adds a sample.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of a histogram.
    pub(super) fn distribution(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let found = histogram.distribution();
        for (bound, count) in &found.cumulative {
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        self.line("_bucket", labels, Some("+Inf"), found.count);
        self.line("_sum", labels, None, found.sum);
        self.line("_count", labels, None, found.count);
    }

    /// Writes a line. `le` is the bound of a bucket of a histogram, else `None`.
    fn line(&mut self, suffix: &str, labels: Labels<'_>, le: Option<&str>, value: impl Display) {
        let all = labels.iter().copied().chain(le.map(|bound| ("le", bound)));
        let all: Vec<String> =
            all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
        let _written = writeln!(self.text, "{}{suffix}{labels} {value}", self.name);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn metrics_are_written_as_prometheus_reads_them() {
        let mut text = Exposition::default();
        text.gauge("a", "Things").sample(&[("x", "a\"b\\c\nd")], 1.5);
        let histogram = Histogram::new(&[0.1, 1.0]);
        histogram.observe(Duration::from_millis(500));
        text.histogram("b_seconds", "Times").distribution(&[("y", "z")], &histogram);
        let expected = "\
# HELP a Things
# TYPE a gauge
a{x=\"a\\\"b\\\\c\\nd\"} 1.5
# HELP b_seconds Times
# TYPE b_seconds histogram
b_seconds_bucket{y=\"z\",le=\"0.1\"} 0
b_seconds_bucket{y=\"z\",le=\"1\"} 1
b_seconds_bucket{y=\"z\",le=\"+Inf\"} 1
b_seconds_sum{y=\"z\"} 0.5
b_seconds_count{y=\"z\"} 1
";
        assert_eq!(text.finish(), expected);
    }
}
