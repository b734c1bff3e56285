//! A pod that a server takes is taken with its sidecars, too.

use kube_schema::validate::pod_template;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{applied, known, pod, request, set};
use crate::kinds::sidecarset::complete;
use crate::kinds::testing::{accepting, webhooks_of};
use crate::lookup::{Lookup, LookupResult};
use crate::pod::review;
use crate::{Options, Outcome, Request, Response};

const PATHS: [&str; 3] = ["/a", "/b", "/a/$(A)"];

fn path() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&PATHS)
}

prop_compose! {
    /// Mounts of these volumes, no two at one path.
    fn mounts(volumes: &'static [&'static str])(
        of in prop::collection::btree_map(path(), (prop::sample::select(volumes), any::<bool>()), 0..3),
    ) -> Vec<Value> {
        let one = |(path, (volume, sub)): (&str, (&str, bool))| {
            let mut mount = json!({"name": volume, "mountPath": path});
            if sub {
                mount["subPathExpr"] = json!("$(A)/x");
            }
            mount
        };
        of.into_iter().map(one).collect()
    }
}

prop_compose! {
    fn own(name: &'static str)(
        mounts in mounts(&["data", "v"]), device in any::<bool>(), values in prop::collection::vec("[ab]?", 0..3),
        cpu in prop::option::of(1..4u32), priority in prop::option::of(0..2u32),
    ) -> Value {
        let mut container = json!({"name": name, "image": "main:1", "volumeMounts": mounts});
        let mut env: Vec<Value> = values.iter().zip(["A", "B", "C"])
            .map(|(value, name)| json!({"name": name, "value": value})).collect();
        env.extend(priority.map(|number: u32| json!({"name": "KRUISE_CONTAINER_PRIORITY", "value": number.to_string()})));
        container["env"] = env.into();
        if device {
            container["volumeDevices"] = json!([{"name": "disk", "devicePath": "/dev/x"}]);
        }
        if let Some(cpu) = cpu {
            container["resources"] = json!({"requests": {"cpu": cpu.to_string()}, "limits": {"cpu": "8"}});
        }
        container
    }
}

prop_compose! {
    /// A pod that a server takes: with volumes, devices, init containers, containers that start in order.
    fn any_pod()(
        main in own("main"), second in prop::option::of(own("second")), replaced in prop::option::of(own("a-side")),
        init in prop::option::of((own("init"), any::<bool>())), annotated in any::<bool>(), secret in any::<bool>(),
    ) -> Value {
        let mut pod = pod();
        let containers: Vec<Value> = [Some(main), second, replaced].into_iter().flatten().collect();
        pod["spec"] = json!({"containers": containers, "volumes": [
            {"name": "data", "emptyDir": {}}, {"name": "v", "emptyDir": {"medium": "Memory"}},
            {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}]});
        if let Some((mut init, native)) = init {
            if native {
                init["restartPolicy"] = json!("Always");
            }
            pod["spec"]["initContainers"] = json!([init]);
        }
        if annotated {
            pod["metadata"]["annotations"] = json!({"k": "{\"a\":1}"});
        }
        if secret {
            pod["spec"]["imagePullSecrets"] = json!([{"name": "s"}]);
        }
        pod
    }
}

prop_compose! {
    /// A set of this name; its containers have names of their own, so that sets are not in each other's way.
    fn any_set(name: &'static str)(
        counts in (0..3usize, 0..3usize).prop_filter("a set has containers", |counts| *counts != (0, 0)), before in any::<bool>(), hot in any::<bool>(), native in any::<bool>(),
        share in any::<(bool, bool)>(), mounts in mounts(&["v", "w"]), transfer in any::<bool>(),
        patch in prop::option::of(prop::sample::select(&["Retain", "Overwrite", "MergePatchJson"][..])),
        policy in prop::option::of(prop::sample::select(&["cpu*50%", "max(cpu, 100m)", "200m"][..])),
        secret in any::<bool>(),
    ) -> Value {
        let switch = |on: bool| if on { "enabled" } else { "disabled" };
        let base = |kind: &str| {
            let mut one = json!({
                "name": format!("{name}-{kind}"), "image": "side:1", "volumeMounts": mounts, "env": [{"name": "B", "value": "own"}],
                "podInjectPolicy": if before { "BeforeAppContainer" } else { "AfterAppContainer" },
                "shareVolumePolicy": {"type": switch(share.0)}, "shareVolumeDevicePolicy": {"type": switch(share.1)},
            });
            if transfer {
                one["transferEnv"] = json!([{"sourceContainerName": "main", "envNames": ["C", "B", "A"]}]);
            }
            one
        };
        let containers: Vec<Value> = ["side", "more"].iter().take(counts.0).map(|kind| {
            let mut one = base(kind);
            if hot {
                one["upgradeStrategy"] = json!({"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"});
            }
            if let Some(expression) = policy {
                one["resourcesPolicy"] = json!({"targetContainersMode": "sum", "targetContainersNameRegex": "^main$",
                    "resourcesExpr": {"requests": {"cpu": expression}}});
            }
            one
        }).collect();
        let inits: Vec<Value> = ["warm", "zeta"].iter().take(counts.1).map(|kind| {
            let mut one = base(kind);
            if native {
                one["restartPolicy"] = json!("Always");
            }
            one
        }).collect();
        let mut spec = json!({
            "containers": containers, "initContainers": inits,
            "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
            "updateStrategy": {"type": if native { "NotUpdate" } else { "RollingUpdate" }},
        });
        if let Some(policy) = patch {
            let key = if policy == "Overwrite" { format!("k-{name}") } else { "k".to_owned() };
            spec["patchPodMetadata"] = json!([{"annotations": {key: "{\"b\":2}"}, "patchPolicy": policy}]);
        }
        if secret {
            spec["imagePullSecrets"] = json!([{"name": "s"}, {"name": "t"}]);
        }
        let mut set = set(name, spec);
        set["apiVersion"] = json!("apps.kruise.io/v1beta1");
        complete(&mut set);
        set
    }
}

/// What a server has against a pod.
fn faults(pod: &Value) -> Vec<String> {
    let template = json!({"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]});
    let errors = pod_template(&template, &[], "pod");
    errors.iter().map(ToString::to_string).collect()
}

/// Whether a set would be stored among the others.
fn is_stored(set: &Value, others: &[Value]) -> Result<(), String> {
    let review = json!({"kind": {"group": "apps.kruise.io", "version": "v1beta1", "kind": "SidecarSet"},
        "operation": "CREATE", "object": set});
    let options = Options {
        patch_metadata_by_default: true,
        ..Options::default()
    };
    let whitelist = Lookup::Setting(kruise_api::names::sidecarset::PATCH_WHITELIST);
    let mut lookups = known(others);
    lookups.insert(whitelist, LookupResult::NotFound);
    let (webhooks, request) = (webhooks_of("SidecarSet"), Request::from_review(review).unwrap());
    match accepting(&lookups, |lookups| webhooks.validate(&request, options, lookups)) {
        Outcome::Response(Response::Allow { .. }) | Outcome::Widen(..) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

proptest! {
    #[test]
    fn a_pod_that_a_server_takes_is_taken_with_its_sidecars_too(
        pod in any_pod(), first in any_set("a"), second in prop::option::of(any_set("b")),
    ) {
        prop_assert_eq!(faults(&pod), Vec::<String>::new());
        let sets: Vec<Value> = [Some(first), second].into_iter().flatten().collect();
        for (index, set) in sets.iter().enumerate() {
            prop_assert_eq!(is_stored(set, &sets[..index]), Ok(()));
        }
        let outcome = review(&request(&pod, "u"), Options::default(), &known(&sets));
        prop_assert!(matches!(&outcome, Outcome::Response(Response::Allow { .. })), "{outcome:?}");
        prop_assert_eq!(faults(&applied(&pod, outcome)), Vec::<String>::new());
    }
}
