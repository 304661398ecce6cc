//! Counters and histograms, by labels.

use crate::text::{Kind, Text};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Values of the labels of one series, in the order of their names.
pub type Labels<const N: usize> = [&'static str; N];

/// What a family is called.
#[derive(Debug)]
struct Named<const N: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; N],
}

impl<const N: usize> Named<N> {
    fn pairs(&self, values: &Labels<N>) -> Vec<(&'static str, &'static str)> {
        self.labels.into_iter().zip(*values).collect()
    }
}

/// Counters, one for each combination of labels.
#[derive(Debug)]
pub struct Counters<const N: usize> {
    named: Named<N>,
    values: Mutex<BTreeMap<Labels<N>, u64>>,
}

impl<const N: usize> Counters<N> {
    /// A family without series. Its name ends in `_total`.
    pub fn new(name: &'static str, help: &'static str, labels: [&'static str; N]) -> Self {
        Self { named: Named { name, help, labels }, values: Mutex::default() }
    }

    /// The same with these series at 0: Prometheus sees no increase in a series that begins at 1.
    #[must_use]
    pub fn starting(self, series: impl IntoIterator<Item = Labels<N>>) -> Self {
        locked(&self.values).extend(series.into_iter().map(|labels| (labels, 0)));
        self
    }

    /// Count one.
    pub fn count(&self, labels: Labels<N>) {
        self.add(labels, 1);
    }

    /// Count so many.
    pub fn add(&self, labels: Labels<N>, more: u64) {
        let mut values = locked(&self.values);
        let value = values.entry(labels).or_default();
        *value = value.saturating_add(more);
    }

    /// Write the family.
    pub fn write(&self, text: &mut Text) {
        text.family(self.named.name, Kind::Counter, self.named.help);
        for (labels, value) in &*locked(&self.values) {
            text.sample(self.named.name, &self.named.pairs(labels), value);
        }
    }
}

/// Counts of observations that are at most as large as each limit.
#[derive(Debug, Clone, Default)]
struct Distribution {
    below: Vec<u64>,
    count: u64,
    sum: f64,
}

/// Histograms, one for each combination of labels.
#[derive(Debug)]
pub struct Histograms<const N: usize> {
    named: Named<N>,
    limits: &'static [f64],
    values: Mutex<BTreeMap<Labels<N>, Distribution>>,
}

impl<const N: usize> Histograms<N> {
    /// A family without series. Its name ends in the unit of the limits, which ascend.
    pub fn new(
        name: &'static str,
        help: &'static str,
        labels: [&'static str; N],
        limits: &'static [f64],
    ) -> Self {
        Self { named: Named { name, help, labels }, limits, values: Mutex::default() }
    }

    /// Add an observation of a time.
    pub fn took(&self, labels: Labels<N>, time: Duration) {
        self.observe(labels, time.as_secs_f64());
    }

    /// Add an observation.
    pub fn observe(&self, labels: Labels<N>, value: f64) {
        let mut values = locked(&self.values);
        let one = values.entry(labels).or_default();
        one.below.resize(self.limits.len(), 0);
        one.below
            .iter_mut()
            .zip(self.limits)
            .filter(|(_, limit)| value <= **limit)
            .for_each(|(n, _)| *n += 1);
        one.count += 1;
        one.sum += value;
    }

    /// Write the family.
    pub fn write(&self, text: &mut Text) {
        let Named { name, help, .. } = self.named;
        let [bucket, sum, count] = ["bucket", "sum", "count"].map(|part| format!("{name}_{part}"));
        text.family(name, Kind::Histogram, help);
        for (labels, one) in &*locked(&self.values) {
            let pairs = self.named.pairs(labels);
            for (limit, below) in self.limits.iter().zip(&one.below) {
                text.sample(&bucket, &[&pairs[..], &[("le", &limit.to_string())]].concat(), below);
            }
            text.sample(&bucket, &[&pairs[..], &[("le", "+Inf")]].concat(), one.count);
            text.sample(&sum, &pairs, one.sum);
            text.sample(&count, &pairs, one.count);
        }
    }
}

/// What a lock guards, also after a panic of another thread: a count is never half written.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        write(&mut text);
        text.into_string()
    }

    #[test]
    fn a_counter_begins_at_zero_where_its_series_are_known() {
        let counters = Counters::new("a_total", "A.", ["of"]).starting([["x"], ["y"]]);
        counters.count(["y"]);
        counters.add(["z"], 5);
        let text = written(|text| counters.write(text));
        assert!(text.ends_with("a_total{of=\"x\"} 0\na_total{of=\"y\"} 1\na_total{of=\"z\"} 5\n"), "{text}");
    }

    #[test]
    fn the_buckets_of_a_histogram_are_cumulative() {
        let histograms = Histograms::new("a_seconds", "A.", ["of"], &[0.5, 1.0]);
        for value in [0.5, 0.75, 3.0] {
            histograms.observe(["x"], value);
        }
        let expected = "a_seconds_bucket{of=\"x\",le=\"0.5\"} 1\na_seconds_bucket{of=\"x\",le=\"1\"} 2\n\
                        a_seconds_bucket{of=\"x\",le=\"+Inf\"} 3\na_seconds_sum{of=\"x\"} 4.25\n\
                        a_seconds_count{of=\"x\"} 3\n";
        let text = written(|text| histograms.write(text));
        assert!(text.ends_with(expected), "{text}");
    }
}
