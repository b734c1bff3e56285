use super::{ContainerStatusView, Phase, PodView, Truth};

#[test]
fn a_pod_with_null_everywhere_is_a_pending_pod() {
    let pod: PodView = serde_json::from_str(
        r#"{"metadata":{"name":"a","labels":null,"annotations":null,"finalizers":null,"ownerReferences":null},
            "spec":{"nodeName":"","readinessGates":null,"containers":null},
            "status":{"phase":null,"conditions":null,"containerStatuses":null}}"#,
    )
    .unwrap();
    assert_eq!(
        (pod.phase, pod.node.is_some(), pod.is_active()),
        (Phase::Pending, false, true)
    );
}

#[test]
fn named_ports_the_address_and_prints_of_annotations_are_kept() {
    let pod: PodView = serde_json::from_str(
        r#"{"metadata":{"annotations":{"a":"1","kubectl.kubernetes.io/last-applied-configuration":"{}"}},
            "spec":{"containers":[{"name":"c","ports":[{"containerPort":1},{"name":"web","containerPort":80},
                {"name":"bad","containerPort":70000},{"name":"none"}]},{"name":"d","ports":null}]},
            "status":{"podIP":"192.0.2.1"}}"#,
    )
    .unwrap();
    assert_eq!((&*pod.ip, pod.containers[0].ports.len()), ("192.0.2.1", 1));
    assert_eq!(
        (pod.port_of("c", "web"), pod.port_of("d", "web")),
        (Some(80), None)
    );
    assert_eq!((pod.port_of("c", "bad"), pod.port_of("e", "web")), (None, None));
    assert!(pod.annotations.is_empty() && pod.annotation_prints.has("a", "1"));
    let kubectl = "kubectl.kubernetes.io/last-applied-configuration";
    assert!(!pod.annotation_prints.has_key(kubectl));
}

#[test]
fn a_waiting_resize_is_read_from_the_field_and_from_the_condition() {
    let condition =
        r#"{"status":{"conditions":[{"type":"PodResizePending","status":"True","reason":"Infeasible"}]}}"#;
    for (status, reason) in [
        (condition, Some("Infeasible")),
        (r#"{"status":{"resize":"Deferred"}}"#, Some("Deferred")),
        (r#"{"status":{"resize":"InProgress"}}"#, None),
        (r#"{"status":{"resize":""}}"#, None),
    ] {
        let pod: PodView = serde_json::from_str(status).unwrap();
        let pending = pod.condition("PodResizePending");
        assert_eq!(pending.map(|pending| &*pending.reason), reason, "{status}");
    }
}

#[test]
fn only_a_running_container_has_a_running_id() {
    for (state, id) in [
        (r#"{"running":{"startedAt":null}}"#, "cri://1"),
        ("{}", "cri://1"),
        ("null", "cri://1"),
        (r#"{"waiting":{"reason":"CrashLoopBackOff"}}"#, ""),
        (r#"{"terminated":{"exitCode":1}}"#, ""),
    ] {
        let text = format!(r#"{{"name":"c","containerID":"cri://1","state":{state}}}"#);
        let status: ContainerStatusView = serde_json::from_str(&text).unwrap();
        assert_eq!(status.running_id(), id, "{state}");
    }
}

#[test]
fn states_of_init_containers_that_last_are_kept_and_of_no_others() {
    let pod: PodView = serde_json::from_str(
        r#"{"spec":{"initContainers":[{"name":"once"},{"name":"proxy","restartPolicy":"Always"},{"name":"log","restartPolicy":"Always"}]},
            "status":{"containerStatuses":[{"name":"app","state":{"waiting":{}}}],"initContainerStatuses":[
            {"name":"once","containerID":"cri://0","state":{"terminated":{"exitCode":0}}},
            {"name":"proxy","containerID":"cri://1","restartCount":2,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}},
            {"name":"stray","containerID":"cri://2"}]}}"#,
    )
    .unwrap();
    let names: Vec<&str> = pod.sidecars.iter().map(|status| &*status.name).collect();
    assert_eq!(names, ["proxy"]);
    let proxy = pod.lasting_status_of("proxy").unwrap();
    assert_eq!(proxy.running_since, "2026-01-01T00:00:00Z".parse().ok());
    let app = pod.lasting_status_of("app").unwrap();
    assert_eq!((app.running_since, pod.lasting_status_of("once")), (None, None));
    assert!(pod.status_of("proxy").is_none() && pod.init_containers.is_empty());
}

#[test]
fn ends_and_waits_are_read_from_the_container_state() {
    for (state, succeeded, unconfigured) in [
        (r#"{"running":{}}"#, false, false),
        ("null", false, false),
        (
            r#"{"waiting":{"reason":"CreateContainerConfigError","message":"m"}}"#,
            false,
            true,
        ),
        (r#"{"waiting":{"reason":"ImagePullBackOff"}}"#, false, false),
        (r#"{"waiting":{}}"#, false, false),
        (r#"{"terminated":{"exitCode":0}}"#, true, false),
        (r#"{"terminated":{"exitCode":1}}"#, false, false),
        (r#"{"terminated":{}}"#, false, false),
    ] {
        let text = format!(r#"{{"name":"c","state":{state}}}"#);
        let status: ContainerStatusView = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status.succeeded, status.unconfigured),
            (succeeded, unconfigured),
            "{state}"
        );
    }
}

#[test]
fn only_claims_are_read_from_volumes() {
    for (volumes, claims) in [
        ("null", None),
        (
            r#"[{"name":"a","emptyDir":{}},{"name":"b","persistentVolumeClaim":null}]"#,
            None,
        ),
        (
            r#"[{"name":"a","emptyDir":{}},{"name":"b","persistentVolumeClaim":{"claimName":"c"}}]"#,
            Some(("b", "c")),
        ),
    ] {
        let text = format!(r#"{{"spec":{{"volumes":{volumes}}}}}"#);
        let pod: PodView = serde_json::from_str(&text).unwrap();
        let read = pod.claims.iter().map(|claim| (&*claim.volume, &*claim.claim));
        assert!(read.eq(claims), "{volumes}");
    }
}

#[test]
fn only_pull_secrets_with_a_name_are_kept() {
    let of = |secrets: serde_json::Value| {
        let pod: PodView =
            serde_json::from_value(serde_json::json!({"spec": {"imagePullSecrets": secrets}})).unwrap();
        pod.pull_secrets
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(serde_json::json!([{"name": "b"}, {}, {"name": ""}, {"name": "a"}])),
        ["b", "a"]
    );
    assert_eq!(of(serde_json::json!(null)), [""; 0]);
}

#[test]
fn the_restart_policy_defaults_to_always() {
    for (policy, always) in [
        ("\"Always\"", true),
        ("null", true),
        ("\"OnFailure\"", false),
        ("\"Never\"", false),
    ] {
        let text = format!(r#"{{"spec":{{"restartPolicy":{policy}}}}}"#);
        let pod: PodView = serde_json::from_str(&text).unwrap();
        assert_eq!(pod.restarts_always, always, "{policy}");
    }
}

#[test]
fn every_field_a_planner_reads_is_decoded() {
    let pod: PodView = serde_json::from_str(
        r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","labels":{"l":"1"},
            "annotations":{"apps.kruise.io/inplace-update-state":"{}","note":"dropped"},"finalizers":["f"],
            "creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":"2026-01-01T00:00:01Z",
            "ownerReferences":[{"apiVersion":"apps.kruise.io/v1beta1","kind":"CloneSet","name":"o","uid":"ou","controller":true}]},
            "spec":{"nodeName":"node","readinessGates":[{"conditionType":"G"}],"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"1"}}}]},
            "status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:02Z"}],
            "containerStatuses":[{"name":"c","image":"i","imageID":"id","containerID":"cid","ready":true,"restartCount":3,"resources":{"limits":{"cpu":"2"}}}]}}"#,
    )
    .unwrap();
    assert_eq!(pod.resources_of("c").and_then(|c| c.cpu_request), Some(1000));
    let given = pod.status_of("c").and_then(|c| c.resources.as_deref());
    assert_eq!(given.and_then(|given| given.cpu_limit), Some(2000));
    assert_eq!(
        pod.controller.as_ref().map(|owner| (&*owner.group, &*owner.uid)),
        Some(("apps.kruise.io", "ou"))
    );
    assert_eq!(pod.annotations.len(), 1);
    assert!(pod.deleting && !pod.is_active() && pod.has_gate("G"));
    assert_eq!(
        pod.condition("Ready").map(|ready| ready.status),
        Some(Truth::True)
    );
    assert_eq!(
        pod.status_of("c")
            .map(|status| (&*status.image_id, status.restart_count)),
        Some(("id", 3))
    );
    assert_eq!(pod.image_of("c"), Some("i"));
}

#[test]
fn pods_with_sidecars_keep_all_annotations_and_init_container_names() {
    let pod = |injected: &str| -> PodView {
        let text = format!(
            r#"{{"metadata":{{"annotations":{{"note":"n","kubectl.kubernetes.io/last-applied-configuration":"long"{injected}}}}},
                "spec":{{"initContainers":[{{"name":"i","image":"x"}}]}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let injected = pod(r#","kruise.io/sidecarset-injected-list":"logs""#);
    assert_eq!(
        (injected.annotations.len(), injected.init_containers.len()),
        (2, 1)
    );
    let plain = pod("");
    assert_eq!((plain.annotations.len(), plain.init_containers.len()), (0, 0));
}

#[test]
fn the_priority_is_read_from_the_barrier_variable_only() {
    for (variable, priority) in [
        (
            r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"configMapKeyRef":{"name":"x","key":"p_-3"}}}"#,
            Some(-3),
        ),
        (
            r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"configMapKeyRef":{"name":"x","key":"high"}}}"#,
            None,
        ),
        (r#"{"name":"KRUISE_CONTAINER_BARRIER","value":"p_3"}"#, None),
        (
            r#"{"name":"KRUISE_CONTAINER_BARRIER","valueFrom":{"fieldRef":{"fieldPath":"p_3"}}}"#,
            None,
        ),
        (
            r#"{"name":"OTHER","valueFrom":{"configMapKeyRef":{"name":"x","key":"p_3"}}}"#,
            None,
        ),
    ] {
        let pod = format!(r#"{{"spec":{{"containers":[{{"name":"c","env":[{variable}]}}]}}}}"#);
        let pod: PodView = serde_json::from_str(&pod).unwrap();
        assert_eq!(pod.containers[0].priority, priority, "{variable}");
    }
}

#[test]
fn variables_and_the_annotations_that_they_read_are_kept() {
    let pod: PodView = serde_json::from_str(
        r#"{"metadata":{"labels":{"app":"web"},"annotations":{"config":"v1","other":"dropped"}},
            "spec":{"containers":[{"name":"main","env":[
                {"name":"CFG","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['config']"}}},
                {"name":"APP","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}},
                {"name":"GONE","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['gone']"}}},
                {"name":"IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},
                {"name":"PLAIN","value":"v1"}]}]}}"#,
    )
    .unwrap();
    let variables = pod.containers[0].variables.iter();
    let values: Vec<_> = variables.map(|one| (&*one.name, pod.value_of(one))).collect();
    assert_eq!(values, [("CFG", "v1"), ("APP", "web"), ("GONE", "")]);
    assert_eq!(pod.annotations.len(), 1);
}

#[test]
fn a_whole_container_is_hashed_only_while_that_may_complete_an_update() {
    let (state, report) = (
        r#""apps.kruise.io/inplace-update-state":"{}""#,
        r#""apps.kruise.io/runtime-containers-meta":"{}""#,
    );
    let both = format!("{state},{report}");
    let main = go_compat::container::whole_hash(
        &serde_json::json!({"name": "main", "image": "web:1", "command": ["a"]}),
    );
    for (annotations, label, hashed) in [
        (both.as_str(), "Updating", true),
        (&both, "Normal", false),
        (state, "Updating", false),
        (report, "Updating", false),
    ] {
        let text = format!(
            r#"{{"kind":"Pod","metadata":{{"labels":{{"lifecycle.apps.kruise.io/state":"{label}"}},"annotations":{{{annotations}}}}},
                "spec":{{"containers":[{{"name":"main","image":"web:1","command":["a"]}},{{"name":"side"}}]}}}}"#
        );
        let pod: PodView = serde_json::from_str(&text).unwrap();
        let expected = u32::try_from(main).ok().filter(|_| hashed);
        assert_eq!(pod.containers[0].whole_hash, expected, "{annotations} {label}");
        assert_eq!((&*pod.containers[0].image, pod.containers.len()), ("web:1", 2));
    }
    // Without lifecycle states every pod may be in the middle of an update.
    let text =
        format!(r#"{{"metadata":{{"annotations":{{{both}}}}},"spec":{{"containers":[{{"name":"main"}}]}}}}"#);
    let pod: PodView = serde_json::from_str(&text).unwrap();
    assert!(pod.containers[0].whole_hash.is_some());
}

/// A pod whose node reports this of generations.
fn generations(generation: i64, observed: &str, condition: &str) -> PodView {
    let text = format!(
        r#"{{"metadata":{{"generation":{generation}}},"status":{{{observed}
            "conditions":[{{"type":"ContainersReady","status":"True"{condition}}},{{"type":"PodScheduled","observedGeneration":1}}]}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_status_is_unobserved_only_where_the_node_reports_generations() {
    let (seen, reports) = (r#""observedGeneration":1,"#, r#","observedGeneration":1"#);
    assert!(generations(2, seen, reports).unobserved);
    assert!(!generations(1, seen, reports).unobserved);
    // The API server sets it for a node that never will.
    assert!(!generations(2, seen, "").unobserved);
    assert!(!generations(2, "", "").unobserved);
}

#[test]
fn a_container_that_began_anew_is_trusted_after_its_startup_probe_has_run() {
    let trusted = |probe: &str, status: &str, condition: &str| {
        let text = format!(
            r#"{{"spec":{{"containers":[{{"name":"main"{probe}}},{{"name":"side"}}]}},"status":{{
                "conditions":[{{"type":"ContainersReady","status":"True"{condition}}}],
                "containerStatuses":[{{"name":"main",{status}}},{{"name":"side","ready":true,"restartCount":3}}]}}}}"#
        );
        let pod: PodView = serde_json::from_str(&text).unwrap();
        pod.trusted_at.map(|at| at.to_string())
    };
    let reports = r#","observedGeneration":2"#;
    let probe = r#","startupProbe":{"periodSeconds":4}"#;
    let status = |ready: bool, restarts: u32| {
        format!(
            r#""ready":{ready},"restartCount":{restarts},"state":{{"running":{{"startedAt":"2026-01-01T00:00:00Z"}}}}"#
        )
    };
    let at = |time: &str| Some(time.to_owned());
    assert_eq!(
        trusted(probe, &status(true, 1), reports),
        at("2026-01-01T00:00:07Z")
    );
    let default = r#","startupProbe":{}"#;
    assert_eq!(
        trusted(default, &status(true, 1), reports),
        at("2026-01-01T00:00:13Z")
    );
    for (probe, status, condition, why) in [
        ("", status(true, 1), reports, "no startup probe"),
        (probe, status(false, 1), reports, "it is not said to be ready"),
        (probe, status(true, 0), reports, "there was none before it"),
        (probe, status(true, 1), "", "an older kubelet"),
    ] {
        assert_eq!(trusted(probe, &status, condition), None, "{why}");
    }
}
