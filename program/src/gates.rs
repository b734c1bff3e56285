//! Feature gates: one registry, upstream's names, stages and defaults.
//!
//! Every gate is accepted, because charts and users pass them. A gate of a feature that is not built yet has no effect.

use std::collections::BTreeMap;

/// Objects with the protection label are not deleted.
pub const DELETION_PROTECTION: &str = "ResourcesDeletionProtection";
/// Definitions with the protection label are not deleted while they have objects.
pub const DEFINITIONS_PROTECTION: &str = "DeletionProtectionForCRDCascadingGate";

/// Budgets limit deletions and evictions of pods.
pub const BUDGET_DELETIONS: &str = "PodUnavailableBudgetDeleteGate";
/// Budgets limit updates of pods in place.
pub const BUDGET_UPDATES: &str = "PodUnavailableBudgetUpdateGate";

/// Feature gates with which every pod must reach the pod webhook, and what pods miss that do not.
pub const NEED_ALL_PODS: [(&str, &str); 2] = [
    (
        "KruisePodReadinessGate",
        "pods that no workload of Kruise creates get no readiness gate",
    ),
    (
        "EnableExternalCerts",
        "nobody changes these conditions with the SidecarSets and budgets, so pods are created without their sidecars and \
         without the link to their budget",
    ),
];

/// Maturity of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// May be removed.
    Alpha,
    /// Stays supported.
    Beta,
}

/// Name, default and stage of every gate.
const GATES: &[(&str, bool, Stage)] = &[
    ("PodWebhook", true, Stage::Beta),
    ("KruiseDaemon", true, Stage::Beta),
    ("DaemonWatchingPod", true, Stage::Beta),
    ("WorkloadSpread", true, Stage::Beta),
    (BUDGET_DELETIONS, true, Stage::Beta),
    ("InPlaceUpdateEnvFromMetadata", true, Stage::Beta),
    ("StatefulSetAutoDeletePVC", true, Stage::Beta),
    ("PodProbeMarkerGate", true, Stage::Beta),
    ("PodIndexLabel", true, Stage::Beta),
    (DELETION_PROTECTION, false, Stage::Beta),
    ("ResourceDistributionGate", false, Stage::Beta),
    ("CloneSetShortHash", false, Stage::Alpha),
    ("KruisePodReadinessGate", false, Stage::Alpha),
    ("PreDownloadImageForInPlaceUpdate", false, Stage::Alpha),
    ("PreDownloadImageForDaemonSetUpdate", false, Stage::Alpha),
    ("CloneSetPartitionRollback", false, Stage::Alpha),
    (BUDGET_UPDATES, false, Stage::Alpha),
    ("TemplateNoDefaults", false, Stage::Alpha),
    ("SidecarSetPatchPodMetadataDefaultsAllowed", false, Stage::Alpha),
    ("SidecarTerminator", false, Stage::Alpha),
    ("CloneSetEventHandlerOptimization", false, Stage::Alpha),
    ("PreparingUpdateAsUpdate", false, Stage::Alpha),
    ("ImagePullJobGate", false, Stage::Alpha),
    (DEFINITIONS_PROTECTION, false, Stage::Alpha),
    ("EnhancedLivenessProbe", false, Stage::Alpha),
    ("RecreatePodWhenChangeVCTInCloneSetGate", false, Stage::Alpha),
    ("StatefulSetStartOrdinal", false, Stage::Alpha),
    ("EnableExternalCerts", false, Stage::Alpha),
    ("StatefulSetAutoResizePVCGate", false, Stage::Alpha),
    ("ForceDeleteTimeoutExpectationGate", false, Stage::Alpha),
    ("InPlaceWorkloadVerticalScaling", false, Stage::Alpha),
    ("EnablePodProbeMarkerOnServerless", false, Stage::Alpha),
    ("EnableSortSidecarContainerByName", false, Stage::Alpha),
    ("InPlacePodVerticalScaling", false, Stage::Alpha),
    ("DefaultHostNetworkHostPortsInPodTemplates", false, Stage::Alpha),
    ("DaemonSetPruneIneligibleNodes", false, Stage::Alpha),
];

/// Gates of features that are not built yet.
const WITHOUT_EFFECT: &[&str] = &["EnhancedLivenessProbe"];

/// Names that upstream's documentation uses and its code refuses.
const ALIASES: &[(&str, &str)] = &[
    ("EnhancedLivenessProbeGate", "EnhancedLivenessProbe"),
    (
        "ForceDeleteTimeoutExpectationFeatureGate",
        "ForceDeleteTimeoutExpectationGate",
    ),
];

/// What a gate does to others, whatever was set for them.
#[derive(Clone, Copy, Debug)]
pub enum Dependency {
    /// Without the gate, the dependents are off.
    OffWithout {
        /// The gate.
        gate: &'static str,
        /// What needs it.
        dependents: &'static [&'static str],
    },
    /// With any of these gates, others are on.
    OnWith {
        /// The gates.
        any: &'static [&'static str],
        /// What they need.
        needed: &'static [&'static str],
    },
}

/// The dependencies, in the order in which they apply.
const DEPENDENCIES: &[Dependency] = &[
    Dependency::OffWithout {
        gate: "PodWebhook",
        dependents: &[
            "KruisePodReadinessGate",
            BUDGET_DELETIONS,
            BUDGET_UPDATES,
            "WorkloadSpread",
            "SidecarSetPatchPodMetadataDefaultsAllowed",
            "EnhancedLivenessProbe",
            "EnablePodProbeMarkerOnServerless",
        ],
    },
    Dependency::OffWithout {
        gate: "KruiseDaemon",
        dependents: &[
            "PreDownloadImageForInPlaceUpdate",
            "PreDownloadImageForDaemonSetUpdate",
            "DaemonWatchingPod",
            "InPlaceUpdateEnvFromMetadata",
            "PodProbeMarkerGate",
            "SidecarTerminator",
            "ImagePullJobGate",
            "EnhancedLivenessProbe",
        ],
    },
    Dependency::OnWith {
        any: &[
            "PreDownloadImageForInPlaceUpdate",
            "PreDownloadImageForDaemonSetUpdate",
        ],
        needed: &["ImagePullJobGate"],
    },
    Dependency::OffWithout {
        gate: DELETION_PROTECTION,
        dependents: &[DEFINITIONS_PROTECTION],
    },
];

/// The dependencies, in the order in which they apply.
pub fn dependencies() -> impl Iterator<Item = Dependency> {
    DEPENDENCIES.iter().copied()
}

/// Names that are accepted for a gate, beside its own.
pub fn aliases() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALIASES.iter().copied()
}

/// Gates that are accepted and have no effect, because their feature is not built yet.
pub fn without_effect() -> impl Iterator<Item = &'static str> {
    WITHOUT_EFFECT.iter().copied()
}

/// Name, default and stage of every gate, in no particular order.
pub fn all() -> impl Iterator<Item = (&'static str, bool, Stage)> {
    GATES.iter().copied()
}

/// The values of all gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gates(BTreeMap<&'static str, bool>);

/// What is wrong with a `--feature-gates` value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GateError {
    /// No such gate.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// Neither `true` nor `false`.
    #[error("invalid value of {0}: {1:?}, want true or false")]
    NotBoolean(String, String),
    /// No equals sign.
    #[error("missing bool value for {0:?}: write it as Name=true,Other=false")]
    NoValue(String),
}

impl Gates {
    /// Resolves the flag's text: explicit values, then `AllAlpha` and `AllBeta`, then dependencies, which win over
    /// both. `custom_resources` is the legacy environment variable `CUSTOM_RESOURCE_ENABLE`.
    pub fn parse(text: &str, custom_resources: &str) -> Result<Self, GateError> {
        let mut gates: BTreeMap<&'static str, bool> =
            GATES.iter().map(|(name, on, _)| (*name, *on)).collect();
        if !custom_resources.is_empty() && !custom_resources.split(',').any(|kind| kind == "SidecarSet") {
            gates.insert("PodWebhook", false);
        }
        let mut explicit = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| GateError::NoValue(pair.into()))?;
            explicit.insert(canonical(name.trim())?, boolean(name, value.trim())?);
        }
        for (switch, stage) in [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)] {
            if let Some(on) = explicit.get(switch) {
                let of_stage = GATES.iter().filter(|(_, _, have)| *have == stage);
                gates.extend(of_stage.map(|(name, ..)| (*name, *on)));
            }
        }
        gates.extend(explicit.into_iter().filter(|(name, _)| !name.starts_with("All")));
        let mut gates = Self(gates);
        gates.settle();
        Ok(gates)
    }

    fn settle(&mut self) {
        for dependency in DEPENDENCIES {
            match dependency {
                Dependency::OffWithout { gate, dependents } if !self.on(gate) => {
                    self.0.extend(dependents.iter().map(|name| (*name, false)));
                }
                Dependency::OnWith { any, needed } if any.iter().any(|name| self.on(name)) => {
                    self.0.extend(needed.iter().map(|name| (*name, true)));
                }
                Dependency::OffWithout { .. } | Dependency::OnWith { .. } => {}
            }
        }
    }

    /// The gates that differ from their defaults, as the flag takes them, in the order of their names.
    pub fn changed(&self) -> String {
        let default = |gate: &str| {
            GATES
                .iter()
                .find(|(name, ..)| *name == gate)
                .map(|(_, on, _)| *on)
        };
        let changed = self.0.iter().filter(|(gate, on)| default(gate) != Some(**on));
        let texts: Vec<String> = changed.map(|(gate, on)| format!("{gate}={on}")).collect();
        texts.join(",")
    }

    /// True if the gate is on. Unknown names are off.
    pub fn on(&self, name: &str) -> bool {
        self.0.get(name).copied().unwrap_or(false)
    }
}

fn canonical(name: &str) -> Result<&'static str, GateError> {
    let switches = ["AllAlpha", "AllBeta"].into_iter();
    let aliases = ALIASES
        .iter()
        .filter(|(alias, _)| *alias == name)
        .map(|(_, gate)| *gate);
    let known = GATES
        .iter()
        .map(|(gate, ..)| *gate)
        .chain(switches)
        .find(|gate| *gate == name);
    known
        .or_else(|| aliases.into_iter().next())
        .ok_or_else(|| GateError::Unknown(name.into()))
}

/// The value of a gate in the flag.
pub fn boolean(name: &str, value: &str) -> Result<bool, GateError> {
    match value {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok(true),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok(false),
        _ => Err(GateError::NotBoolean(name.into(), value.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::{GateError, Gates};

    #[test]
    fn without_the_pod_webhook_dependent_gates_are_off_even_if_set() {
        let gates = Gates::parse("PodWebhook=false,KruisePodReadinessGate=true", "").unwrap();
        assert!(!gates.on("KruisePodReadinessGate") && !gates.on("WorkloadSpread"));
    }

    #[test]
    fn without_the_daemon_images_are_not_pulled_ahead() {
        let gates = Gates::parse("KruiseDaemon=false,PreDownloadImageForInPlaceUpdate=true", "").unwrap();
        assert!(!gates.on("ImagePullJobGate") && !gates.on("InPlaceUpdateEnvFromMetadata"));
    }

    #[test]
    fn pulling_ahead_turns_image_pull_jobs_on() {
        assert!(
            Gates::parse("PreDownloadImageForInPlaceUpdate=true", "")
                .unwrap()
                .on("ImagePullJobGate")
        );
    }

    #[test]
    fn the_legacy_resource_list_changes_a_default_that_an_explicit_gate_overrides() {
        assert!(!Gates::parse("", "CloneSet").unwrap().on("PodWebhook"));
        assert!(Gates::parse("", "CloneSet,SidecarSet").unwrap().on("PodWebhook"));
        assert!(
            Gates::parse("PodWebhook=true", "CloneSet")
                .unwrap()
                .on("PodWebhook")
        );
    }

    #[test]
    fn a_stage_switch_leaves_explicit_gates_alone() {
        let gates = Gates::parse("AllAlpha=true,EnableExternalCerts=false", "").unwrap();
        assert!(gates.on("CloneSetShortHash") && !gates.on("EnableExternalCerts"));
    }

    #[test]
    fn an_invalid_value_is_an_error() {
        let error = |text: &str| Gates::parse(text, "").unwrap_err();
        assert_eq!(error("Nope=true"), GateError::Unknown("Nope".into()));
        assert!(matches!(error("PodWebhook=maybe"), GateError::NotBoolean(..)));
        assert!(matches!(error("PodWebhook"), GateError::NoValue(_)));
    }

    #[test]
    fn names_from_the_documentation_are_accepted() {
        let gates = Gates::parse("ForceDeleteTimeoutExpectationFeatureGate=true", "").unwrap();
        assert!(gates.on("ForceDeleteTimeoutExpectationGate"));
    }
}
