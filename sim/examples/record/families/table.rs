//! Objects in the forms that kubectl and caches request: tables and metadata.

use serde_json::{Value, json};

use super::{Dice, Step, get, labelled, patch, post, sample};

const FORMS: &[&str] = &[
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
    "*/*",
    "text/html, application/json;q=0.5",
    "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json",
];

const REFUSED: &[&str] = &[
    "application/json;as=Chair;g=meta.k8s.io;v=v1",
    "application/json;as=Table;g=meta.k8s.io;v=v9",
    "application/json;as=Table;g=other.io;v=v1",
    "text/plain",
    "image/png,text/html",
    "application/xml",
];

const QUERIES: &[&str] = &[
    "",
    "",
    "?includeObject=None",
    "?includeObject=Object",
    "?includeObject=Metadata",
    "?limit=1",
    "?labelSelector=tier%3Dfront",
    "?fieldSelector=metadata.name%3Dnone",
    "?includeObject=Half",
];

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let sample = sample(dice);
    let path = sample.path;
    let a = format!("{path}/a");
    let mut steps = vec![
        post(path, labelled(sample, "a", "front")).accept(dice.word(FORMS)),
        post(path, labelled(sample, "b", "back")),
    ];
    if let Some(status) = sample.status {
        steps.push(patch("merge", &format!("{a}/status"), status()));
    }
    for _ in 0..5 {
        let query = dice.word(QUERIES);
        steps.push(match dice.roll(8) {
            0 | 1 => get(&format!("{a}{query}")).accept(dice.word(FORMS)),
            2 => patch("merge", &a, json!({"metadata": {"labels": {"n": "1"}}})).accept(dice.word(FORMS)),
            3 => get(&format!("{path}/absent")).accept(dice.word(FORMS)),
            4 => get(&format!("{path}{query}")).accept(dice.word(REFUSED)),
            5 => Step::new("DELETE", &format!("{path}/b"), Value::Null).accept(dice.word(FORMS)),
            _ => get(&format!("{path}{query}")).accept(dice.word(FORMS)),
        });
    }
    steps
}
