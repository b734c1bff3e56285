use serde_json::json;

use super::*;

fn ours() -> Value {
    crate::cloneset::crd::manifest("kruise-system")
}

/// The definition as a server stores it and a manager completes it.
fn served() -> Value {
    let mut definition = ours();
    definition["metadata"]["uid"] = json!("u");
    let client = &mut definition["spec"]["conversion"]["webhook"]["clientConfig"];
    client["caBundle"] = json!("QQ==");
    client["url"] = json!("https://192.0.2.1:9876/convert");
    definition["status"] = json!({"storedVersions": ["v1alpha1", "v1beta1"]});
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        for column in version["additionalPrinterColumns"].as_array_mut().unwrap() {
            if column.get("priority").is_none() {
                column["priority"] = json!(0);
            }
        }
        version["schema"]["openAPIV3Schema"]["description"] = json!("Words of another build.");
    }
    definition
}

/// The differences that an edit of the served definition makes, and the advice.
fn edited(edit: impl FnOnce(&mut Value)) -> (Vec<Difference>, Advice) {
    let mut theirs = served();
    edit(&mut theirs);
    let differences = compare(&ours(), &theirs);
    let advice = advice(&differences);
    (differences, advice)
}

const SPEC: &str = "/spec/versions/1/schema/openAPIV3Schema/properties/spec";

#[test]
fn a_definition_that_a_server_completed_has_no_differences() {
    assert_eq!(edited(|_| {}), (Vec::new(), Advice::Nothing));
}

#[test]
fn each_kind_of_difference_has_its_effect_and_its_advice() {
    type Edit = fn(&mut Value);
    let cases: [(Edit, &str, Effect, Advice); 10] = [
        (
            |crd| crd["spec"]["names"]["shortNames"] = json!(["cs"]),
            "spec.names.shortNames",
            Effect::Shows,
            Advice::Apply,
        ),
        (
            |crd| crd["spec"]["versions"][1]["additionalPrinterColumns"][0]["name"] = json!("WANTED"),
            "v1beta1 additionalPrinterColumns",
            Effect::Shows,
            Advice::Apply,
        ),
        (
            |crd| crd.pointer_mut(SPEC).unwrap()["properties"]["replicas"]["maximum"] = json!(9),
            "v1beta1 spec.replicas maximum",
            Effect::Checks,
            Advice::Apply,
        ),
        (
            |crd| crd.pointer_mut(SPEC).unwrap()["required"] = json!(["template"]),
            "v1beta1 spec required",
            Effect::Checks,
            Advice::Apply,
        ),
        (
            |crd| {
                crd.pointer_mut(SPEC).unwrap()["properties"]
                    .as_object_mut()
                    .unwrap()
                    .remove("replicas");
            },
            "v1beta1 spec.replicas",
            Effect::Lacks,
            Advice::Apply,
        ),
        (
            |crd| {
                crd["spec"]["versions"].as_array_mut().unwrap().pop();
            },
            "v1beta1",
            Effect::Lacks,
            Advice::Apply,
        ),
        (
            |crd| crd["spec"]["conversion"] = json!({"strategy": "None"}),
            "spec.conversion.strategy",
            Effect::Lacks,
            Advice::Apply,
        ),
        (
            |crd| crd.pointer_mut(SPEC).unwrap()["properties"]["novelty"] = json!({"type": "string"}),
            "v1beta1 spec.novelty",
            Effect::Loses,
            Advice::Newer,
        ),
        (
            |crd| {
                crd.pointer_mut(SPEC).unwrap()["properties"]["updateStrategy"][PRESERVE] = json!(true);
            },
            "v1beta1 spec.updateStrategy x-kubernetes-preserve-unknown-fields",
            Effect::Loses,
            Advice::Newer,
        ),
        (
            |crd| crd["spec"]["scope"] = json!("Cluster"),
            "spec.scope",
            Effect::Fixed,
            Advice::Recreate,
        ),
    ];
    for (edit, path, effect, expected) in cases {
        let (differences, advice) = edited(edit);
        let found: Vec<(&str, Effect)> = differences
            .iter()
            .map(|one| (one.path.as_str(), one.effect))
            .collect();
        assert_eq!((found, advice), (vec![(path, effect)], expected), "{path}");
    }
}

#[test]
fn a_version_we_do_not_have_is_migrated_while_objects_may_be_stored_in_it() {
    let newer = |crd: &mut Value| {
        let mut version = crd["spec"]["versions"][1].clone();
        version["name"] = json!("v1");
        version["storage"] = json!(false);
        crd["spec"]["versions"].as_array_mut().unwrap().push(version);
    };
    let (differences, advice) = edited(newer);
    assert_eq!((differences[0].effect, advice), (Effect::Loses, Advice::Newer));
    let (differences, advice) = edited(|crd| {
        newer(crd);
        crd["status"]["storedVersions"] = json!(["v1beta1", "v1"]);
    });
    assert_eq!((differences[0].effect, advice), (Effect::Stored, Advice::Migrate));
}

#[test]
fn fields_below_a_schema_that_preserves_unknown_fields_are_no_loss() {
    let template = |crd: &mut Value| {
        let template = json!({"type": "object", "properties": {"spec": {"type": "object"}}, PRESERVE: true});
        crd.pointer_mut(SPEC).unwrap()["properties"]["template"] = template;
    };
    let (differences, _) = edited(template);
    assert!(
        differences.iter().all(|one| one.effect <= Effect::Checks),
        "{differences:?}"
    );
}

#[test]
fn differences_inside_of_lists_and_maps_are_found() {
    let (differences, advice) = edited(|crd| {
        let claims = "/properties/scaleStrategy/properties/podsToDelete/items/type";
        *crd.pointer_mut(&format!("{SPEC}{claims}")).unwrap() = json!("integer");
    });
    assert_eq!(
        differences[0].path,
        "v1beta1 spec.scaleStrategy.podsToDelete[] type"
    );
    assert_eq!(
        differences[0].text,
        "the cluster has \"integer\", ours has \"string\""
    );
    assert_eq!(advice, Advice::Apply);
}

#[test]
fn long_values_are_cut_at_a_character() {
    assert_eq!(short(&json!("é".repeat(100))).chars().count(), 61);
}
