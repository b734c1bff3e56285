//! Metrics with a series for each object. Each controller declares its families as data.

use std::collections::BTreeMap;

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::BareCounter;

/// A family with a series for each object.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its help text.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// How its values change.
    pub form: Form,
}

impl Spec {
    /// Counts writes that the caches did not show in time, by namespace and name of the object.
    pub const fn overdue_writes(name: &'static str) -> Self {
        Self {
            name,
            help: "Writes not seen in time",
            labels: &["namespace", "name"],
            form: Form::Counter,
        }
    }
}

/// How values of a family change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A counter. Its name has no suffix `_total`, as upstream.
    Counter,
    /// A gauge.
    Gauge,
}

type Labels = Vec<(&'static str, String)>;

/// The families. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub(super) struct Families {
    counters: BTreeMap<&'static str, Family<Labels, BareCounter>>,
    gauges: BTreeMap<&'static str, Family<Labels, Gauge>>,
}

impl Families {
    pub(super) fn register(registry: &mut Registry, specs: &[&'static Spec]) -> Self {
        let mut families = Self::default();
        for spec in specs {
            match spec.form {
                Form::Counter => {
                    let family = families.counters.entry(spec.name).or_default().clone();
                    registry.register(spec.name, spec.help, family);
                }
                Form::Gauge => {
                    let family = families.gauges.entry(spec.name).or_default().clone();
                    registry.register(spec.name, spec.help, family);
                }
            }
        }
        families
    }

    pub(super) fn series(&self, spec: &'static Spec) -> Series {
        Series {
            spec,
            counter: self.counters.get(spec.name).cloned().unwrap_or_default(),
            gauge: self.gauges.get(spec.name).cloned().unwrap_or_default(),
        }
    }
}

/// A handle to one family.
#[derive(Clone, Debug)]
pub struct Series {
    spec: &'static Spec,
    counter: Family<Labels, BareCounter>,
    gauge: Family<Labels, Gauge>,
}

impl Series {
    fn labels(&self, values: &[&str]) -> Labels {
        let values = values.iter().map(|value| (*value).to_owned());
        self.spec.labels.iter().copied().zip(values).collect()
    }

    /// Increments the series with these label values.
    pub fn count(&self, values: &[&str]) {
        self.counter.get_or_create(&self.labels(values)).0.inc();
    }

    /// Sets the series with these label values.
    pub fn set(&self, values: &[&str], number: usize) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.gauge.get_or_create(&self.labels(values)).set(number);
    }

    /// Removes the series of a deleted object.
    pub fn forget(&self, values: &[&str]) {
        self.gauge.remove(&self.labels(values));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    const LATE: Spec = Spec {
        name: "late",
        help: "Writes not seen in time",
        labels: &["namespace", "name"],
        form: Form::Counter,
    };
    const MISSED: Spec = Spec {
        name: "missed",
        help: "Pods that were missed",
        labels: &["set"],
        form: Form::Gauge,
    };

    #[test]
    fn each_object_has_a_series_until_it_is_deleted() {
        let mut registry = Registry::default();
        let families = Families::register(&mut registry, &[&LATE, &MISSED]);
        let (late, missed) = (families.series(&LATE), families.series(&MISSED));
        late.count(&["n", "web"]);
        late.count(&["n", "web"]);
        missed.set(&["logs"], 3);
        missed.set(&["mesh"], 1);
        missed.forget(&["mesh"]);
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE late unknown",
            "late{namespace=\"n\",name=\"web\"} 2",
            "missed{set=\"logs\"} 3",
        ] {
            assert!(text.lines().any(|have| have == line), "{line}\n{text}");
        }
        assert!(!text.contains("mesh"), "{text}");
    }
}
