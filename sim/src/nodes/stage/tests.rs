use std::time::Duration;

use serde_json::json;

use super::{DEFAULT_STAGES, Input, Kind, Stage, StageError};

fn stage(spec: &str) -> Result<Vec<Stage>, StageError> {
    Stage::read(&format!(
        "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {{name: s}}\nspec:\n  resourceRef: {{apiGroup: v1, kind: Pod}}\n{spec}"
    ))
}

#[test]
fn the_default_stages_are_understood() {
    let stages = Stage::read(DEFAULT_STAGES).unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(
        names,
        ["node-initialize", "pod-sync", "pod-terminate", "pod-tear-down"]
    );
    let bound = json!({"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}});
    let matching: Vec<_> = stages
        .iter()
        .map(|stage| stage.matches(Kind::Pod, &Input::new(&bound)))
        .collect();
    assert_eq!(matching, [false, true, false, false]);
}

#[test]
fn selectors_hold_when_all_their_parts_do() {
    let spec = "  selector:\n    matchLabels: {app: web}\n    matchAnnotations: {fault: crash}\n    matchExpressions: [{key: .status.phase, operator: In, values: [Running]}]\n";
    let stage = stage(spec).unwrap().remove(0);
    let pod = |app: &str, fault: &str, phase: &str| json!({"metadata": {"labels": {"app": app}, "annotations": {"fault": fault}}, "status": {"phase": phase}});
    assert!(stage.matches(Kind::Pod, &Input::new(&pod("web", "crash", "Running"))));
    assert!(!stage.matches(Kind::Node, &Input::new(&pod("web", "crash", "Running"))));
    for (app, fault, phase) in [
        ("db", "crash", "Running"),
        ("web", "", "Running"),
        ("web", "crash", "Pending"),
    ] {
        assert!(
            !stage.matches(Kind::Pod, &Input::new(&pod(app, fault, phase))),
            "{app} {fault} {phase}"
        );
    }
}

#[test]
fn what_is_not_supported_is_refused_with_its_name() {
    for (spec, part) in [
        ("  weightFrom: {}\n", "weightFrom"),
        ("  immediateNextStage: true\n", "immediateNextStage"),
        ("  delay: {durationFrom: {}}\n", "durationFrom"),
        (
            "  next: {statusTemplate: '{{ range .spec.containers }}x{{ end }}'}\n",
            "range",
        ),
        ("  next: {statusTemplate: '{{ $now := Now }}'}\n", "$now"),
        ("  next: {patches: [{type: apply, template: x}]}\n", "apply"),
        ("  next: {step: {kind: Fly}}\n", "Fly"),
        ("  next: {step: {kind: Initialize}}\n", "Initialize"),
        (
            "  selector: {matchExpressions: [{key: '.a | foo', operator: Exists}]}\n",
            "foo",
        ),
        (
            "  selector: {matchExpressions: [{key: .a, operator: Gt}]}\n",
            "Gt",
        ),
    ] {
        let why = stage(spec).unwrap_err().to_string();
        assert!(why.contains(part), "{spec}: {why}");
    }
    let other = stage("").unwrap();
    assert_eq!(other.len(), 1);
    assert!(Stage::read("kind: Stage").is_err());
}

#[test]
fn templates_are_filled_from_the_object() {
    let spec = "  next:\n    statusTemplate: |\n      at: {{ Now | Quote }}\n      of: {{ .metadata.name }}\n      none: {{ .metadata.x | Quote }}\n";
    let stage = stage(spec).unwrap().remove(0);
    let now = "2026-01-02T03:04:05Z".parse().unwrap();
    let rendered = stage.next.patches[0]
        .template
        .render(&json!({"metadata": {"name": "p"}}), now);
    let expected = json!({"at": "2026-01-02T03:04:05Z", "of": "p", "none": ""});
    assert_eq!(rendered, Ok(expected));
}

#[test]
fn a_jittered_delay_lies_between_its_bounds() {
    let stage = stage("  delay: {durationMilliseconds: 100, jitterDurationMilliseconds: 300}\n")
        .unwrap()
        .remove(0);
    let delays: Vec<_> = (0..1000).map(|draw| stage.delay(|| draw)).collect();
    assert_eq!(delays.iter().min(), Some(&Duration::from_millis(100)));
    assert_eq!(delays.iter().max(), Some(&Duration::from_millis(299)));
}
