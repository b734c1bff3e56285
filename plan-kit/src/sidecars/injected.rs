//! Which containers of a pod are those of SidecarSets.

use std::collections::BTreeMap;

use kruise_views::PodView;

use super::{
    names::{HASH, WORKING},
    record::Records,
    twins::{Working, twins},
};

/// Names of the containers that SidecarSets put into a pod, each with the SidecarSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injected(BTreeMap<String, String>);

impl Injected {
    /// Is the container of this name a sidecar?
    pub fn contains(&self, container: &str) -> bool {
        self.0.contains_key(container)
    }

    /// The SidecarSet that a container is of.
    pub fn set_of(&self, container: &str) -> Option<&str> {
        self.0.get(container).map(String::as_str)
    }
}

/// The sidecars of a pod, as its annotations record them. None if they cannot be read.
pub fn injected(pod: &PodView) -> Injected {
    let annotation = |key: &str| pod.annotations.get(key).unwrap_or_default();
    let records = Records::read(annotation(HASH)).unwrap_or_default();
    if records.0.is_empty() {
        return Injected::default();
    }
    let hot = Working::read(annotation(WORKING));
    let of_set = |(set, names): (&String, Vec<String>)| {
        let all = names.into_iter().flat_map(|name| {
            if hot.0.contains_key(&name) {
                twins(&name).to_vec()
            } else {
                vec![name]
            }
        });
        all.map(|name| (name, set.clone())).collect::<Vec<_>>()
    };
    let lists = records
        .0
        .iter()
        .map(|(set, record)| (set, record.sidecar_list.clone()));
    Injected(lists.flat_map(of_set).collect())
}

#[cfg(test)]
mod tests {
    use kruise_views::PodView;

    use super::{HASH, WORKING, injected};

    #[test]
    fn sidecars_are_those_of_the_records_and_hot_ones_have_two_containers() {
        let hash = r#"{"logs":{"hash":"x","sidecarSetName":"logs","sidecarList":["agent","proxy"]}}"#;
        let pod = PodView {
            annotations: [(HASH, hash), (WORKING, r#"{"proxy":"proxy-1"}"#)]
                .into_iter()
                .collect(),
            ..PodView::default()
        };
        let injected = injected(&pod);
        for (name, set) in [
            ("agent", Some("logs")),
            ("proxy-1", Some("logs")),
            ("proxy-2", Some("logs")),
            ("proxy", None),
            ("main", None),
        ] {
            assert_eq!(
                (injected.set_of(name), injected.contains(name)),
                (set, set.is_some()),
                "{name}"
            );
        }
    }

    #[test]
    fn a_pod_without_records_has_none() {
        assert!(!injected(&PodView::default()).contains("agent"));
    }
}
