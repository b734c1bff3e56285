//! Bodies in Kubernetes' protobuf, good and bad, and other types of content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Dice, Step, get, patch, post};
use crate::transcript::step::PROTOBUF;

const MAPS: &str = "/api/v1/namespaces/$ns/configmaps";

/// A field with a message or text.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(value.len()).unwrap()];
    out.extend(value);
    out
}

fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let names = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &names), field(2, object)].concat()
}

fn entry(number: u8, key: &str, value: &str) -> Vec<u8> {
    field(
        number,
        &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat(),
    )
}

fn config_map(name: &str, value: &str) -> Vec<u8> {
    let metadata = [field(1, name.as_bytes()), entry(11, "app", "web")].concat();
    envelope(
        "v1",
        "ConfigMap",
        &[field(1, &metadata), entry(2, "k", value)].concat(),
    )
}

fn send(method: &str, target: &str, body: Vec<u8>) -> Step {
    Step {
        content_type: PROTOBUF.into(),
        ..Step::new(method, target, STANDARD.encode(body).into())
    }
}

pub(super) fn steps(dice: &mut Dice) -> Vec<Step> {
    let one = format!("{MAPS}/a");
    let mut steps = vec![send("POST", MAPS, config_map("a", "v"))];
    for _ in 0..7 {
        steps.push(match dice.roll(8) {
            0 => send("PUT", &one, config_map("a", dice.word(&["w", "v", ""]))),
            1 => send("PUT", &one, config_map("b", "w")),
            2 => send("POST", MAPS, config_map(dice.word(&["a", "b", "Bad_"]), "x")),
            3 | 4 => broken(dice),
            5 => deletion(dice, &one),
            6 => other(dice, &one),
            _ => get(&one),
        });
    }
    steps
}

fn broken(dice: &mut Dice) -> Step {
    let body = match dice.roll(9) {
        0 => Vec::new(),
        1 => b"{}".to_vec(),
        2 => b"k8s\0\x0a\x05".to_vec(),
        3 => envelope("v1", "ConfigMap", &[8, 1]),
        4 => envelope("v1", "ConfigMap", b"\x0a\x7fshort"),
        5 => envelope("v1", "ConfigMap", &field(1, &[8, 1])),
        6 => envelope("v1", "Foo", &[]),
        7 => envelope("v9", "ConfigMap", &[]),
        // a field of the future, of each wire type
        _ => envelope(
            "v1",
            "ConfigMap",
            &[&field(1, &field(1, b"f"))[..], b"\xa0\x06\x07\xa5\x06\0\0\0\0"].concat(),
        ),
    };
    send("POST", MAPS, body)
}

fn deletion(dice: &mut Dice, one: &str) -> Step {
    let options = match dice.roll(6) {
        0 => Vec::new(),
        1 => field(2, &field(1, b"11111111-1111-4111-8111-111111111111")),
        2 => field(4, b"Foreground"),
        3 => field(4, b"Sideways"),
        4 => field(5, b"All"),
        _ => return send("DELETE", one, b"k8s\0\x12\x05".to_vec()),
    };
    send("DELETE", one, envelope("v1", "DeleteOptions", &options))
}

fn other(dice: &mut Dice, one: &str) -> Step {
    let things = "/apis/example.com/v1/namespaces/$ns/things";
    match dice.roll(7) {
        0 => send(
            "DELETE",
            &format!("{things}/a"),
            envelope("v1", "DeleteOptions", &[]),
        ),
        1 => Step {
            content_type: "text/plain".into(),
            ..post(MAPS, json!({"metadata": {"name": "t"}}))
        },
        2 => Step {
            content_type: "text/plain".into(),
            ..post(things, json!({"metadata": {"name": "t"}}))
        },
        3 => send("PATCH", one, b"k8s\0".to_vec()),
        4 => post(MAPS, Value::String("[]".into())),
        5 => post(MAPS, Value::String("{\"a\"".into())),
        _ => patch("merge", one, Value::String("{".into())),
    }
}
