//! What the author of an object is warned of, whatever its kind. OpenKruise accepts it.

use kruise_api::names::DELETE_PROTECTION;
use kube_schema::defaults;
use serde_json::Value;

use super::{KindWebhooks, Scope, parts};
use crate::json::{items, member, present, text};

/// More warnings than this are counted only: an API server drops what is too long together.
const MOST: usize = 10;

/// The warnings about an object. On UPDATE, only those that the stored object does not deserve too.
pub(super) fn advice(kind: &KindWebhooks, object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let mut texts = about(kind, object, scope);
    if let Some(old) = scope.old {
        let known = about(kind, old, scope);
        texts.retain(|text| !known.contains(text));
    }
    let more = texts.len().saturating_sub(MOST);
    if more > 0 {
        texts.truncate(MOST);
        texts.push(format!("and {more} more warnings of this kind"));
    }
    texts
}

fn about(kind: &KindWebhooks, object: &Value, scope: &Scope<'_>) -> Vec<String> {
    let unknown = parts::unknown(kind, scope.version, object).into_iter();
    let mut texts: Vec<String> = unknown
        .map(|path| {
            format!("unknown field \"{path}\": what is created has it only if the API server knows it")
        })
        .collect();
    for (path, template) in parts::pod_templates(kind, object) {
        let seconds = template.pointer("/spec/terminationGracePeriodSeconds");
        if let Some(seconds) = seconds.and_then(Value::as_i64).filter(|seconds| *seconds < 0) {
            texts.push(format!(
                "{path}.spec.terminationGracePeriodSeconds: the API server reads {seconds} as 1"
            ));
        }
    }
    texts.extend(protects_nothing(kind, object, scope));
    texts.extend((kind.advice)(object, scope));
    texts
}

/// Warns of a protection label that nothing heeds.
fn protects_nothing(kind: &KindWebhooks, object: &Value, scope: &Scope<'_>) -> Option<String> {
    let labels = member(member(object, "metadata")?, "labels")?;
    let is_heeded = kind.deletions && scope.options.deletion_protection;
    let value = text(labels, DELETE_PROTECTION);
    if value.is_empty() || is_heeded {
        return None;
    }
    let why = if kind.deletions {
        "while the feature gate ResourcesDeletionProtection is off".to_owned()
    } else {
        format!("because no {} is protected by it", kind.kind.kind)
    };
    Some(format!(
        "metadata.labels[{DELETE_PROTECTION}]: {value} protects nothing {why}"
    ))
}

/// The longest name that fits into a label together with a dash and the hash of a revision.
const LONGEST_NAME: usize = 52;

/// Warns of a name that makes the label of the revision too long: then the API server refuses every pod.
pub(super) fn long_name(object: &Value) -> Option<String> {
    let name = text(member(object, "metadata")?, "name");
    (name.len() > LONGEST_NAME).then(|| {
        format!(
            "metadata.name: of {} characters, more than {LONGEST_NAME}: with the hash of its revision it may be too long for the \
             label controller-revision-hash, and then no pod can be created",
            name.len()
        )
    })
}

/// Warns of claim templates that change while `why`: the claims that exist, and their pods, do not follow.
pub(super) fn changed_claims(object: &Value, scope: &Scope<'_>, why: &str) -> Option<String> {
    let of = |object: &Value| {
        let spec = member(object, "spec").unwrap_or(&Value::Null);
        let mut claims = items(spec, "volumeClaimTemplates").to_vec();
        for claim in &mut claims {
            defaults::claim(claim);
            if let Some(claim) = claim.as_object_mut() {
                claim.remove("status");
            }
            if let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) {
                spec.entry("volumeMode").or_insert("Filesystem".into());
            }
        }
        claims
    };
    let old = scope.old.filter(|old| of(old) != of(object));
    old.map(|_| {
        format!(
            "spec.volumeClaimTemplates: {why}: claims that exist stay as they are, and only those of new pods follow the change"
        )
    })
}

/// Warns of lifecycle hooks that hold no pod.
pub(super) fn empty_hooks(spec: &Value) -> Vec<String> {
    let lifecycle = member(spec, "lifecycle").unwrap_or(&Value::Null);
    let is_empty = |hook: &Value, name: &str| match present(hook, name) {
        Some(Value::Object(labels)) => labels.is_empty(),
        Some(Value::Array(finalizers)) => finalizers.is_empty(),
        _ => true,
    };
    let hooks = ["preDelete", "inPlaceUpdate", "preNormal"].into_iter();
    let empty = hooks.filter(|name| {
        let hook = member(lifecycle, name);
        hook.is_some_and(|hook| is_empty(hook, "labelsHandler") && is_empty(hook, "finalizersHandler"))
    });
    let text =
        |name| format!("spec.lifecycle.{name}: without labelsHandler and finalizersHandler it holds no pod");
    empty.map(text).collect()
}

/// Warns of a partition of more pods than there are.
pub(super) fn large_partition(spec: &Value, partition: Option<&Value>, path: &str) -> Option<String> {
    let replicas = spec.get("replicas").map_or(Some(1), Value::as_i64)?;
    let partition = partition?.as_i64().filter(|partition| *partition > replicas)?;
    Some(format!(
        "{path}.partition: {partition} is more than the {replicas} replicas, so no pod is updated"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::{OPTIONS, put, sample, samples};
    use super::*;
    use crate::Options;

    /// The warnings about a sample with these changes, which must be the same for both versions. They must not be
    /// repeated for what is stored.
    #[track_caller]
    fn warned(kind: &str, changes: &[(&str, Value)]) -> Vec<String> {
        let mut all = Vec::new();
        for (case, object) in samples().filter(|(case, _)| case.is_of(kind)) {
            let mut changed = object.clone();
            for (place, value) in changes {
                put(&mut changed["spec"], place, value);
            }
            let warnings = case.warnings("CREATE", &changed, &Value::Null);
            assert_eq!(case.warnings("UPDATE", &changed, &object), warnings, "{kind}");
            assert!(
                case.warnings("UPDATE", &changed, &changed).is_empty(),
                "{kind}: is stored"
            );
            assert!(
                case.warnings("CREATE", &object, &Value::Null).is_empty(),
                "{kind}: the sample"
            );
            all.push(warnings);
        }
        all.dedup();
        let [warnings] = all.as_slice() else {
            panic!("{all:?}")
        };
        warnings.clone()
    }

    #[test]
    fn unknown_fields_of_templates_are_warned_of() {
        for (kind, place, path) in [
            ("BroadcastJob", "template.spec", "spec.template.spec"),
            (
                "CloneSet",
                "template.spec.containers.0",
                "spec.template.spec.containers[0]",
            ),
            (
                "DaemonSet",
                "template.spec.containers.0",
                "spec.template.spec.containers[0]",
            ),
            (
                "EphemeralJob",
                "template.ephemeralContainers.0",
                "spec.template.ephemeralContainers[0]",
            ),
            ("SidecarSet", "containers.0", "spec.containers[0]"),
            ("StatefulSet", "template.spec", "spec.template.spec"),
            (
                "UnitedDeployment",
                "template.cloneSetTemplate.spec.template.spec",
                "spec.template.cloneSetTemplate.spec.template.spec",
            ),
        ] {
            let warnings = warned(kind, &[(&format!("{place}.imagePullpolicy"), json!("Always"))]);
            let expected = format!("unknown field \"{path}.imagePullpolicy\"");
            assert_eq!(warnings.len(), 1, "{kind}: {warnings:?}");
            assert!(warnings[0].starts_with(&expected), "{kind}: {warnings:?}");
        }
    }

    #[test]
    fn unknown_fields_of_claims_are_warned_of() {
        let (case, mut object) = sample("StatefulSet");
        put(
            &mut object["spec"],
            "volumeClaimTemplates.0.spec.newer",
            &json!(1),
        );
        let warnings = case.warnings("CREATE", &object, &Value::Null);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("unknown field \"spec.volumeClaimTemplates[0].spec.newer\""));
    }

    #[test]
    fn a_protection_label_that_nothing_heeds_is_warned_of() {
        let on = Options {
            deletion_protection: true,
            ..OPTIONS
        };
        let mut seen = [0, 0];
        for (case, mut object) in samples() {
            object["metadata"]["labels"][DELETE_PROTECTION] = json!("Always");
            let kind = object["kind"].as_str().unwrap().to_owned();
            let can_be = case.entry().deletions;
            let warned = |case: &super::super::testing::Case| {
                let texts = case.warnings("CREATE", &object, &Value::Null);
                texts
                    .into_iter()
                    .filter(|text| text.contains("protects nothing"))
                    .count()
            };
            assert_eq!(warned(&case), 1, "{kind}");
            assert_eq!(warned(&case.with(on)), usize::from(!can_be), "{kind}");
            assert!(
                case.warnings("UPDATE", &object, &object).is_empty(),
                "{kind}: is stored"
            );
            seen[usize::from(can_be)] += 1;
        }
        assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
    }

    #[test]
    fn a_name_that_leaves_no_room_for_the_hash_of_a_revision_is_warned_of() {
        for kind in ["CloneSet", "StatefulSet"] {
            let (case, mut object) = sample(kind);
            for (length, is_long) in [(52, false), (53, true), (63, true)] {
                object["metadata"]["name"] = json!("n".repeat(length));
                let texts = case.warnings("CREATE", &object, &Value::Null);
                let expected = texts.iter().any(|text| text.starts_with("metadata.name: "));
                assert_eq!(expected, is_long, "{kind} {length}: {texts:?}");
            }
            let short = case.with(Options {
                short_hash: true,
                ..OPTIONS
            });
            let texts = short.warnings("CREATE", &object, &Value::Null);
            assert_eq!(texts.is_empty(), kind == "CloneSet", "{texts:?}");
        }
    }

    #[test]
    fn claim_templates_that_change_while_nothing_follows_them_are_warned_of() {
        let gates = |claims_resized, claims_recreate| Options {
            claims_resized,
            claims_recreate,
            ..OPTIONS
        };
        let claims = |size: &str| {
            json!([{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}}}}])
        };
        for (kind, options, follows) in [
            ("CloneSet", gates(false, false), false),
            ("CloneSet", gates(false, true), true),
            ("StatefulSet", gates(false, false), false),
            ("StatefulSet", gates(true, false), false),
            ("StatefulSet", gates(true, false), true),
        ] {
            let (case, mut old) = sample(kind);
            let case = case.with(options);
            old["spec"]["volumeClaimTemplates"] = claims("1Gi");
            if kind == "StatefulSet" && follows {
                old["spec"]["volumeClaimUpdateStrategy"] = json!({"type": "OnPodRollingUpdate"});
            }
            let mut new = old.clone();
            assert!(
                case.warnings("UPDATE", &new, &old).is_empty(),
                "{kind}: nothing changes"
            );
            new["spec"]["volumeClaimTemplates"] = claims("2Gi");
            let texts = case.warnings("UPDATE", &new, &old);
            assert_eq!(texts.is_empty(), follows, "{kind}: {texts:?}");
            assert!(
                texts
                    .iter()
                    .all(|text| text.starts_with("spec.volumeClaimTemplates: ")),
                "{texts:?}"
            );
            // the same, as a client writes it that fills in less
            let mut bare = old.clone();
            bare["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] = json!("Filesystem");
            let texts = case.warnings("UPDATE", &bare, &old);
            assert!(texts.is_empty(), "{kind}: {texts:?}");
        }
    }

    #[test]
    fn keys_with_blanks_of_a_topology_that_pods_come_back_to_are_warned_of() {
        let (case, mut object) = sample("StatefulSet");
        let key = "kruise.io/preferred-persistent-topology";
        for (value, wrong) in [("a,b.c/d", 0), ("a, b", 1), ("a,", 1), ("", 0), (" a , b ", 2)] {
            object["metadata"]["annotations"] = json!({key: value});
            let texts = case.warnings("CREATE", &object, &Value::Null);
            assert_eq!(texts.len(), wrong, "{value:?}: {texts:?}");
            assert!(
                texts
                    .iter()
                    .all(|text| text.starts_with(&format!("metadata.annotations[{key}]: ")))
            );
        }
    }

    #[test]
    fn unknown_fields_of_either_template_of_an_advancedcronjob_are_warned_of() {
        let (case, mut object) = sample("AdvancedCronJob");
        for (template, path) in [
            (
                json!({"jobTemplate": {"spec": {"template": {"spec": {"Containers": []}}}}}),
                "jobTemplate.spec.template.spec.Containers",
            ),
            (
                json!({"broadcastJobTemplate": {"spec": {"template": {"spec": {"Containers": []}}}}}),
                "broadcastJobTemplate.spec.template.spec.Containers",
            ),
        ] {
            object["spec"]["template"] = template;
            let found = parts::unknown(case.entry(), "v1beta1", &object);
            assert_eq!(found, [format!("spec.template.{path}")]);
        }
    }

    #[test]
    fn many_warnings_are_counted() {
        let (case, mut object) = sample("CloneSet");
        for index in 0..15 {
            object["spec"]["template"]["spec"][format!("newer{index}")] = json!(1);
        }
        let warnings = case.warnings("CREATE", &object, &Value::Null);
        assert_eq!(warnings.len(), MOST + 1);
        assert!(warnings[MOST].contains("5 more"), "{warnings:?}");
    }

    #[test]
    fn a_negative_grace_period_of_pods_is_warned_of_because_the_api_server_reads_it_as_one() {
        for kind in ["CloneSet", "StatefulSet", "DaemonSet", "BroadcastJob"] {
            let warnings = warned(
                kind,
                &[("template.spec.terminationGracePeriodSeconds", json!(-5))],
            );
            let text = "spec.template.spec.terminationGracePeriodSeconds: the API server reads -5 as 1";
            assert_eq!(warnings, [text], "{kind}");
        }
    }

    #[test]
    fn hooks_that_hold_no_pod_are_warned_of() {
        let lifecycle = json!({
            "preDelete": {"labelsHandler": {}, "finalizersHandler": []}, "preNormal": {"markPodNotReady": true},
            "inPlaceUpdate": {"finalizersHandler": ["a.b/c"]},
        });
        let holds_no_pod = "without labelsHandler and finalizersHandler it holds no pod";
        let expected =
            ["preDelete", "preNormal"].map(|name| format!("spec.lifecycle.{name}: {holds_no_pod}"));
        assert_eq!(warned("CloneSet", &[("lifecycle", lifecycle)]), expected);
        let hooks = json!({"preDelete": {}});
        for kind in ["DaemonSet", "StatefulSet"] {
            assert_eq!(
                warned(kind, &[("lifecycle", hooks.clone())]),
                expected[..1],
                "{kind}"
            );
        }
    }

    #[test]
    fn a_partition_beyond_the_replicas_is_warned_of() {
        let (new, old) = (
            (
                "updateStrategy",
                json!({"rollingUpdate": {"partition": 7, "maxUnavailable": 1}}),
            ),
            ("updateStrategy", json!({"partition": 7, "maxUnavailable": 1})),
        );
        let of_version = |version: &str, change: (&str, Value), replicas: i64| {
            let mut found = samples().filter(|(case, _)| case.is_of("CloneSet"));
            let is_it = |(_, object): &(_, Value)| object["apiVersion"].as_str().unwrap().ends_with(version);
            let (case, mut object) = found.find(is_it).unwrap();
            put(&mut object["spec"], change.0, &change.1);
            object["spec"]["replicas"] = json!(replicas);
            case.warnings("CREATE", &object, &Value::Null)
        };
        for (version, change, path) in [
            ("v1beta1", new, "spec.updateStrategy.rollingUpdate"),
            ("v1alpha1", old, "spec.updateStrategy"),
        ] {
            let expected = format!("{path}.partition: 7 is more than the 5 replicas, so no pod is updated");
            assert_eq!(of_version(version, change.clone(), 5), [expected]);
            assert!(of_version(version, change, 7).is_empty());
        }
        let path = "updateStrategy.rollingUpdate.partition";
        let warnings = warned("StatefulSet", &[(path, json!(4))]);
        assert_eq!(
            warnings,
            [format!(
                "spec.{path}: 4 is more than the 3 replicas, so no pod is updated"
            )]
        );
    }

    #[test]
    fn hosts_of_sidecars_are_warned_of() {
        let probe = json!({"httpGet": {"port": 80, "host": "example.com"}});
        let handlers = json!({"preStop": {"tcpSocket": {"port": 80, "host": "127.0.0.1"}},
            "postStart": {"httpGet": {"port": 80, "host": ""}}});
        let changes = [
            ("containers.0.livenessProbe", probe),
            ("containers.0.lifecycle", handlers),
        ];
        let warnings = warned("SidecarSet", &changes);
        let refuses = "from Kubernetes 1.34 on, Pod Security \"baseline\" refuses pods with this sidecar";
        let expected = ["livenessProbe.httpGet.host", "lifecycle.preStop.tcpSocket.host"];
        assert_eq!(
            warnings,
            expected.map(|path| format!("spec.containers[0].{path}: {refuses}"))
        );
        let init = json!([{"name": "i", "image": "i:1", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1, "host": "h"}}}]);
        let changes = [
            ("initContainers", init),
            ("updateStrategy", json!({"type": "NotUpdate"})),
        ];
        let warnings = warned("SidecarSet", &changes);
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("spec.initContainers[0].startupProbe.tcpSocket.host: "));
    }
}
