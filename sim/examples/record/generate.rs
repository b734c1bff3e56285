//! Sequences from seeds. A third or more of the requests is meant to fail.

use serde_json::{Value, json};

use crate::bodies::{SAMPLES, Sample};
use crate::transcript::step::Step;

/// A small generator (xorshift), so that seeds mean the same for ever.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..5 {
            dice.roll(2);
        }
        dice
    }

    /// One of a few texts.
    pub fn word(&mut self, list: &[&'static str]) -> &'static str {
        list[self.roll(list.len())]
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    pub fn pick(&mut self, mut list: Vec<Value>) -> Value {
        let at = self.roll(list.len());
        list.swap_remove(at)
    }
}

/// The name of the sequence, which is its namespace, and its steps.
pub fn sequence(seed: u64) -> (String, Vec<Step>) {
    let name = format!("x{seed:04}");
    let mut dice = Dice::new(seed);
    let sample = &SAMPLES[usize::try_from(seed).unwrap() % SAMPLES.len()];
    let namespace = json!({"metadata": {"name": "$ns"}});
    let mut steps = vec![
        Step::new("POST", "/api/v1/namespaces", namespace),
        Step::new("POST", sample.path, object(sample, "a", &json!({}))),
    ];
    steps.extend(more(&mut dice, sample, steps.len()));
    (name, steps)
}

/// A dozen requests about a sample; `first` is the index of the first.
pub fn more(dice: &mut Dice, sample: &Sample, first: usize) -> Vec<Step> {
    let count = 8 + dice.roll(5);
    (first..first + count)
        .map(|index| step(dice, sample, index))
        .collect()
}

pub fn object(sample: &Sample, name: &str, change: &Value) -> Value {
    let mut object = (sample.good)();
    object["apiVersion"] = sample.api_version.into();
    object["kind"] = sample.kind.into();
    object["metadata"] = json!({"name": name, "labels": {"app": "web"}});
    merge(&mut object, change);
    object
}

pub fn merge(target: &mut Value, change: &Value) {
    match change {
        Value::Object(members) => {
            for (name, member) in members {
                if member.is_null() {
                    target.as_object_mut().map(|target| target.remove(name));
                } else if member.is_object() && target[name.as_str()].is_object() {
                    merge(&mut target[name.as_str()], member);
                } else {
                    target[name.as_str()] = member.clone();
                }
            }
        }
        other => *target = other.clone(),
    }
}

fn step(dice: &mut Dice, sample: &Sample, index: usize) -> Step {
    let name = ["a", "a", "a", "b", "absent"][dice.roll(5)];
    let one = format!("{}/{name}", sample.path);
    match dice.roll(24) {
        0..3 => create(dice, sample),
        3 | 4 => Step::new("GET", &one, Value::Null),
        5..7 => list(dice, sample),
        7..11 => update(dice, sample, &one, name, index),
        11..14 => patch(dice, sample, &one, "merge"),
        14..16 => patch(dice, sample, &one, "strategic-merge"),
        16..19 => json_patch(dice, &one, index),
        19..21 => delete(dice, sample, &one, index),
        21 => status(dice, sample, &one),
        _ => odd(dice, sample, &one),
    }
}

fn create(dice: &mut Dice, sample: &Sample) -> Step {
    let query = ["", "", "?dryRun=All", "?fieldValidation=Strict", "?dryRun=Some"][dice.roll(5)];
    let target = format!("{}{query}", sample.path);
    let body = match dice.roll(6) {
        0 => object(sample, "a", &json!({})),
        1 => object(sample, "b", &json!({})),
        2 => object(
            sample,
            "",
            &json!({"metadata": {"name": null, "generateName": "gen-"}}),
        ),
        3 => object(sample, "c", &json!({"zzUnknown": {"x": 1}})),
        _ => object(sample, "d", &dice.pick((sample.bad)())),
    };
    Step::new("POST", &target, body)
}

fn list(dice: &mut Dice, sample: &Sample) -> Step {
    const QUERIES: &[&str] = &[
        "",
        "?labelSelector=app%3Dweb",
        "?labelSelector=app%20notin%20(web)",
        "?fieldSelector=metadata.name%3Da",
        "?limit=1",
        "?labelSelector=%21tier",
        "?fieldSelector=spec.none%3Dx",
        "?labelSelector=a%20in%20(b",
        "?resourceVersion=0",
        "?resourceVersion=x",
        "?resourceVersionMatch=Exact",
        "?sendInitialEvents=true",
        "?resourceVersion=1&resourceVersionMatch=Never",
        "?continue=nonsense",
    ];
    let target = format!("{}{}", sample.path, QUERIES[dice.roll(QUERIES.len())]);
    let mut step = Step::new("GET", &target, Value::Null);
    if dice.roll(6) == 0 {
        step.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1".into();
    }
    step
}

fn update(dice: &mut Dice, sample: &Sample, one: &str, name: &str, index: usize) -> Step {
    let change = match dice.roll(4) {
        0 => dice.pick((sample.bad)()),
        _ => dice.pick((sample.patches)()),
    };
    let mut body = object(sample, name, &change);
    let earlier = dice.roll(index.max(1)).max(1);
    match dice.roll(6) {
        0 => {}
        1 => body["metadata"]["resourceVersion"] = "1".into(),
        2 => body["metadata"]["uid"] = "$uid(1)".into(),
        3 => body["metadata"]["uid"] = "11111111-1111-4111-8111-111111111111".into(),
        _ => body["metadata"]["resourceVersion"] = format!("$rv({earlier})").into(),
    }
    Step::new("PUT", one, body)
}

fn patch(dice: &mut Dice, sample: &Sample, one: &str, kind: &str) -> Step {
    let mut body = match dice.roll(5) {
        0 => dice.pick((sample.bad)()),
        1 => return Step::patch(kind, one, json!([1, 2])),
        _ => dice.pick((sample.patches)()),
    };
    match dice.roll(6) {
        0 => merge(&mut body, &json!({"metadata": {"resourceVersion": "1"}})),
        1 => merge(&mut body, &json!({"metadata": {"uid": "$uid(1)"}})),
        2 => merge(
            &mut body,
            &json!({"metadata": {"uid": "22222222-2222-4222-8222-222222222222"}}),
        ),
        3 => merge(&mut body, &json!({"metadata": {"resourceVersion": "$rv(1)"}})),
        _ => {}
    }
    Step::patch(kind, one, body)
}

fn json_patch(dice: &mut Dice, one: &str, index: usize) -> Step {
    let earlier = dice.roll(index.max(1)).max(1);
    let body = match dice.roll(8) {
        0 => json!([{"op": "add", "path": "/metadata/labels/x", "value": "y"}]),
        1 => json!([{"op": "replace", "path": "/metadata/labels/app", "value": "other"}]),
        2 => json!([{"op": "remove", "path": "/metadata/labels/none"}]),
        3 => json!([{"op": "test", "path": "/metadata/uid", "value": "$uid(1)"},
            {"op": "add", "path": "/metadata/annotations", "value": {"n": "1"}}]),
        4 => json!([{"op": "test", "path": "/metadata/resourceVersion", "value": format!("$rv({earlier})")},
            {"op": "add", "path": "/metadata/labels", "value": {"only": "this"}}]),
        5 => json!([{"op": "jump", "path": "/metadata"}]),
        6 => json!({"op": "add"}),
        _ => json!([{"op": "add", "path": "/metadata/none/x", "value": 1}]),
    };
    Step::patch("json", one, body)
}

fn delete(dice: &mut Dice, sample: &Sample, one: &str, index: usize) -> Step {
    let earlier = dice.roll(index.max(1)).max(1);
    let body = match dice.roll(8) {
        0 => Value::Null,
        1 => json!({"preconditions": {"uid": "$uid(1)"}}),
        2 => json!({"preconditions": {"uid": "33333333-3333-4333-8333-333333333333"}}),
        3 => json!({"preconditions": {"resourceVersion": format!("$rv({earlier})")}}),
        4 => json!({"propagationPolicy": "Foreground"}),
        5 => json!({"propagationPolicy": "Sideways"}),
        6 => json!({"dryRun": ["All"]}),
        _ => {
            return Step::new(
                "DELETE",
                &format!("{}?labelSelector=tier", sample.path),
                Value::Null,
            );
        }
    };
    Step::new("DELETE", one, body)
}

fn status(dice: &mut Dice, sample: &Sample, one: &str) -> Step {
    let target = format!("{one}/status");
    let Some(status) = sample.status else {
        return Step::new("GET", &target, Value::Null);
    };
    if sample.scale && dice.roll(2) == 0 {
        return match dice.roll(3) {
            0 => Step::new("GET", &format!("{one}/scale"), Value::Null),
            1 => Step::patch("merge", &format!("{one}/scale"), json!({"spec": {"replicas": 2}})),
            _ => Step::patch(
                "merge",
                &format!("{one}/scale"),
                json!({"spec": {"replicas": -2}}),
            ),
        };
    }
    let mut body = status();
    merge(
        &mut body,
        &json!({"metadata": {"labels": {"of": "status"}}, "spec": {"paused": true, "nodeName": "n"}}),
    );
    Step::patch("merge", &target, body)
}

pub fn odd(dice: &mut Dice, sample: &Sample, one: &str) -> Step {
    match dice.roll(9) {
        0 => Step::new("POST", one, json!({})),
        1 => Step::new("PUT", sample.path, json!({})),
        2 => Step::new("POST", sample.path, "{not json".into()),
        3 => Step::new("GET", &format!("{one}/nothing"), Value::Null),
        4 => Step::new("GET", "/apis/none.example.com/v1/things", Value::Null),
        5 => Step::new(
            "POST",
            &sample.path.replace("$ns", "none"),
            object(sample, "a", &json!({})),
        ),
        6 => Step::patch("odd", one, json!({})),
        7 => Step {
            accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1".into(),
            ..Step::new("GET", one, Value::Null)
        },
        _ => Step {
            accept: "image/png".into(),
            ..Step::new("GET", one, Value::Null)
        },
    }
}
