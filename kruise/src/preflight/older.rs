//! What older managers of OpenKruise do without being told, and this build does only with a feature gate.
//!
//! OpenKruise 1.4 has neither of the gates `ImagePullJobGate` and `ResourceDistributionGate`: it always acts on these kinds.
//! Version 1.5 added both, off by default. Version 1.4 turned `ResourcesDeletionProtection` on by default, and version 1.8 off
//! again; before 1.6.1 it was off without `PodWebhook`. Other defaults of versions 1.4 to 1.7 are those of this build.

use crate::gates::{DELETION_PROTECTION, Gates};

/// A released version: major, minor, patch.
type Version = (u32, u32, u32);

/// The oldest version whose defaults are known here.
const OLDEST: Version = (1, 4, 0);

/// Gates that were on, or did not exist yet and whose feature was on, before a version.
const ON_BEFORE: [(&str, Version); 3] = [
    ("ImagePullJobGate", (1, 5, 0)),
    ("ResourceDistributionGate", (1, 5, 0)),
    (DELETION_PROTECTION, (1, 8, 0)),
];

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

/// The gates whose features the manager of this version has on, although its flag does not turn them on. `flag` is the text of
/// its feature gates; those that it names are as it says.
pub(super) fn implied(version: Version, flag: &str, gates: &Gates) -> Vec<&'static str> {
    let names = |gate: &str| {
        let mut named = flag
            .split(',')
            .filter_map(|pair| Some(pair.split_once('=')?.0.trim()));
        named.any(|name| name == gate)
    };
    let is_implied = |gate: &str, before: Version| {
        let depends = gate == DELETION_PROTECTION && version < PROTECTION_ALONE;
        // All of them were alpha then.
        !names(gate) && !names("AllAlpha") && version < before && (!depends || gates.on("PodWebhook"))
    };
    let known = ON_BEFORE.into_iter().filter(|_| version >= OLDEST);
    let implied = known.filter(|(gate, before)| is_implied(gate, *before));
    implied.map(|(gate, _)| gate).collect()
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
        assert_eq!(implied_by("m:v1.7.0", "AllAlpha=false"), [""; 0]);
    }

    #[test]
    fn protection_needed_the_webhooks_of_pods_before_1_6_1() {
        assert_eq!(implied_by("m:v1.6.0", "PodWebhook=false"), [""; 0]);
        assert_eq!(implied_by("m:v1.6.1", "PodWebhook=false"), [DELETION_PROTECTION]);
    }
}
