//! Metrics with a series for each object, declared as data by whoever counts them.

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
    /// What it counts.
    pub help: &'static str,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Does it rise only, or go up and down?
    pub form: Form,
}

/// How values of a family change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It only rises. Its name does not get the ending `_total`, as upstream has it.
    Counter,
    /// It is set.
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

/// One family, for whoever counts.
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

    /// One more of this object, given by the values of the labels.
    pub fn count(&self, values: &[&str]) {
        self.counter.get_or_create(&self.labels(values)).0.inc();
    }

    /// So many of this object.
    pub fn set(&self, values: &[&str], number: usize) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.gauge.get_or_create(&self.labels(values)).set(number);
    }

    /// The object is gone.
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
    fn objects_are_counted_one_by_one_and_those_that_are_gone_are_not_shown() {
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
