//! What older managers of OpenKruise do without being told, and this build does only with a feature gate.
//!
//! OpenKruise 1.4 has neither of the gates `ImagePullJobGate` and `ResourceDistributionGate`: it always acts on
//! these kinds. Version 1.5 added both, off by default. Version 1.4 turned `ResourcesDeletionProtection` on by
//! default, and version 1.8 off again; before 1.6.1 it was off without `PodWebhook`. Other defaults of versions 1.4
//! to 1.7 are those of this build.
//!
//! `AllAlpha` sets the gates that are alpha in its version. They are others than here: this build has newer ones, and
//! `ResourceDistributionGate` was alpha.

use kruise_frame::gates::{DELETION_PROTECTION, Gates, boolean};

/// A released version: major, minor, patch.
type Version = (u32, u32, u32);

/// The oldest version whose defaults are known here.
const OLDEST: Version = (1, 4, 0);

/// The first version with the defaults of this build.
const SAME: Version = (1, 8, 0);

/// From this version on there are gates of pulled images and of distributed resources.
const GATED: Version = (1, 5, 0);

/// From this version on, deletion protection does not need the webhooks of pods.
const PROTECTION_ALONE: Version = (1, 6, 1);

/// The version in the tag of an image, as in `openkruise/kruise-manager:v1.4.0`.
pub(super) fn version(image: &str) -> Option<Version> {
    let name = image.split('@').next()?.rsplit('/').next()?;
    let (_, tag) = name.split_once(':')?;
    let released = tag.trim_start_matches('v').split(['-', '+']).next()?;
    let mut numbers = released.split('.').map(str::parse);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let patch = numbers.next().unwrap_or(Ok(0)).ok()?;
    numbers.next().is_none().then_some((major, minor, patch))
}

/// Is it a version with other defaults than this build, which are known?
fn is_older(version: Version) -> bool {
    (OLDEST..SAME).contains(&version)
}

/// The value of a gate in the text of feature gates, if it is named there.
fn named<'f>(flag: &'f str, gate: &str) -> Option<&'f str> {
    let mut pairs = flag.split(',').rev().filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim() == gate)?;
    Some(value.trim())
}

/// Does a manager of this version turn on its alpha gates, which are others than those of this build?
pub(super) fn turns_alpha_on(version: Version, flag: &str) -> bool {
    is_older(version) && named(flag, "AllAlpha").is_some_and(is_true)
}

/// The gates whose features the manager of this version has on, although they are off in this build with the same
/// flag. `flag` is the text of its feature gates; those that it names are as it says. `gates` are those of this
/// build.
pub(super) fn implied(version: Version, flag: &str, gates: &Gates) -> Vec<&'static str> {
    if !is_older(version) {
        return Vec::new();
    }
    let all_alpha = named(flag, "AllAlpha").map(is_true);
    let has_webhooks = version >= PROTECTION_ALONE || gates.on("PodWebhook");
    let features = [
        ("ImagePullJobGate", version < GATED),
        (
            "ResourceDistributionGate",
            version < GATED || all_alpha == Some(true),
        ),
        // An alpha gate that was on by default.
        (DELETION_PROTECTION, all_alpha != Some(false) && has_webhooks),
    ];
    let implied = features
        .into_iter()
        .filter(|(gate, is_on)| *is_on && named(flag, gate).is_none() && !gates.on(gate));
    implied.map(|(gate, _)| gate).collect()
}

fn is_true(value: &str) -> bool {
    boolean("AllAlpha", value) == Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn implied_by(image: &str, flag: &str) -> Vec<&'static str> {
        let gates = Gates::parse(flag, "").unwrap();
        implied(version(image).unwrap(), flag, &gates)
    }

    #[test]
    fn the_tag_of_an_image_is_its_version() {
        for (image, expected) in [
            ("openkruise/kruise-manager:v1.4.0", Some((1, 4, 0))),
            (
                "registry.example.com:5000/kruise-manager:1.7.3-alpine",
                Some((1, 7, 3)),
            ),
            ("kruise-manager:v1.5@sha256:0123", Some((1, 5, 0))),
            ("registry.example.com:5000/kruise-manager", None),
            ("kruise-manager@sha256:0123", None),
            ("kruise-manager:latest", None),
            ("kruise-manager:v1.4.0.1", None),
            ("", None),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
    }

    #[test]
    fn each_version_has_the_features_that_it_has_without_a_gate() {
        let all = [
            "ImagePullJobGate",
            "ResourceDistributionGate",
            DELETION_PROTECTION,
        ];
        assert_eq!(implied_by("m:v1.4.2", ""), all);
        for version in ["m:v1.5.0", "m:v1.6.4", "m:v1.7.3"] {
            assert_eq!(implied_by(version, ""), [DELETION_PROTECTION], "{version}");
        }
        for version in ["m:v0.1.0", "m:v1.3.1", "m:v1.8.0", "m:v1.9.0"] {
            assert_eq!(implied_by(version, ""), [""; 0], "{version}");
        }
    }

    #[test]
    fn what_the_flag_names_is_as_it_says() {
        let flag = "ImagePullJobGate=true,ResourcesDeletionProtection=false";
        assert_eq!(implied_by("m:v1.4.0", flag), ["ResourceDistributionGate"]);
    }

    #[test]
    fn all_alpha_sets_the_gates_that_were_alpha_and_no_feature_without_a_gate() {
        let distribution = "ResourceDistributionGate";
        for (image, flag, expected) in [
            ("m:v1.7.0", "AllAlpha=false", vec![]),
            (
                "m:v1.7.0",
                "AllAlpha=true",
                vec![distribution, DELETION_PROTECTION],
            ),
            (
                "m:v1.5.0",
                "AllAlpha=true,ResourceDistributionGate=false",
                vec![DELETION_PROTECTION],
            ),
            (
                "m:v1.4.0",
                "AllAlpha=false",
                vec!["ImagePullJobGate", distribution],
            ),
            // It turns on the gate of pulled images here, too.
            (
                "m:v1.4.0",
                "AllAlpha=true",
                vec![distribution, DELETION_PROTECTION],
            ),
            ("m:v1.8.0", "AllAlpha=true", vec![]),
        ] {
            assert_eq!(implied_by(image, flag), expected, "{image} {flag}");
        }
    }

    #[test]
    fn the_alpha_gates_of_other_versions_are_others() {
        for (version, flag, expected) in [
            ((1, 4, 0), "AllAlpha=true", true),
            ((1, 7, 3), "KruiseDaemon=true, AllAlpha = true", true),
            ((1, 7, 3), "AllAlpha=true,AllAlpha=false", false),
            ((1, 7, 3), "AllBeta=true", false),
            ((1, 8, 0), "AllAlpha=true", false),
            ((1, 3, 0), "AllAlpha=true", false),
        ] {
            assert_eq!(turns_alpha_on(version, flag), expected, "{version:?} {flag}");
        }
    }

    #[test]
    fn protection_needed_the_webhooks_of_pods_before_1_6_1() {
        assert_eq!(implied_by("m:v1.6.0", "PodWebhook=false"), [""; 0]);
        assert_eq!(implied_by("m:v1.6.1", "PodWebhook=false"), [DELETION_PROTECTION]);
    }
}
