//! Whatever is done to pods, what is reported of them is true.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::GATE;
use crate::nodes::{Options, Timings};
use crate::world::tests::{PODS, Play, condition, is_ready};

/// What somebody does to the pods.
#[derive(Clone, Debug)]
enum Deed {
    Gate(usize, bool),
    Image(usize, usize, u8),
    Delete(usize),
    Create(usize),
    Wait(u64),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let one = prop_oneof![
        3 => (0..3_usize, any::<bool>()).prop_map(|(pod, open)| Deed::Gate(pod, open)),
        3 => (0..3_usize, 0..2_usize, 1..4_u8).prop_map(|(pod, at, tag)| Deed::Image(pod, at, tag)),
        1 => (0..3_usize).prop_map(Deed::Delete),
        2 => (0..3_usize).prop_map(Deed::Create),
        4 => (0..4000_u64).prop_map(Deed::Wait),
    ];
    proptest::collection::vec(one, 1..30)
}

fn perform(play: &mut Play, deed: &Deed) {
    let path = |pod: usize| format!("{PODS}/p{pod}");
    let attempt = |play: &mut Play, method, path: &str, body: Option<&Value>| {
        let request = crate::Request::new(method, path, body);
        let request = match method {
            crate::Method::Patch => request.content_type("application/strategic-merge-patch+json"),
            _ => request,
        };
        play.0.handle(&request);
    };
    match deed {
        Deed::Gate(pod, open) => {
            let status = if *open { "True" } else { "False" };
            let body = json!({"status": {"conditions": [{"type": GATE, "status": status}]}});
            attempt(
                play,
                crate::Method::Patch,
                &format!("{}/status", path(*pod)),
                Some(&body),
            );
        }
        Deed::Image(pod, at, tag) => {
            let name = ["main", "side"][*at];
            let body = json!({"spec": {"containers": [{"name": name, "image": format!("{name}:{tag}")}]}});
            attempt(play, crate::Method::Patch, &path(*pod), Some(&body));
        }
        Deed::Delete(pod) => attempt(play, crate::Method::Delete, &path(*pod), None),
        Deed::Create(pod) => {
            let body = json!({"metadata": {"name": format!("p{pod}")}, "spec": {
                "readinessGates": [{"conditionType": GATE}],
                "containers": [{"name": "main", "image": "main:1"}, {"name": "side", "image": "side:1"}]}});
            attempt(play, crate::Method::Post, PODS, Some(&body));
        }
        Deed::Wait(millis) => play.pass(Duration::from_millis(*millis)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The agent reports Ready only for pods whose containers run what is specified and whose gates are open; a
    /// container restarts only when its own image changed; and once all is quiet, all of it is so.
    #[test]
    fn the_agent_never_lies(deeds in deeds()) {
        let options = Options { timings: Timings::fast(), ..Options::default() };
        let mut play = Play::new(&options);
        play.node("n1");
        play.rest();
        let revision = play.0.api().revision();
        let watch = play.watch(&format!("{PODS}?watch=true&resourceVersion={revision}"));
        for deed in &deeds {
            perform(&mut play, deed);
        }
        play.rest();
        let mut last: BTreeMap<(String, usize), (i64, String)> = BTreeMap::new();
        let mut was_ready: BTreeMap<String, bool> = BTreeMap::new();
        for (kind, pod) in play.events(watch) {
            let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
            let became = is_ready(&pod) && !was_ready.insert(uid.clone(), is_ready(&pod)).unwrap_or(false);
            if became {
                prop_assert_eq!(condition(&pod, GATE).0, "True", "{} {}", kind, pod);
                prop_assert_eq!(condition(&pod, "ContainersReady").0, "True");
            }
            for at in 0..2 {
                let status = &pod["status"]["containerStatuses"][at];
                let Some(count) = status["restartCount"].as_i64() else { continue };
                let running = status.pointer("/state/running").is_some();
                prop_assert!(running || status["ready"] == false);
                if !running { continue }
                let image = status["image"].as_str().unwrap().to_owned();
                if let Some((before, old)) = last.insert((uid.clone(), at), (count, image.clone())) {
                    // a quick change there and back may restart under the same image, never change without a restart
                    prop_assert!(count == before && image == old || count == before + 1, "{}", pod);
                }
            }
        }
        for name in ["p0", "p1", "p2"] {
            let Some(pod) = play.get(&format!("{PODS}/{name}")) else { continue };
            prop_assert_eq!(is_ready(&pod), condition(&pod, GATE).0 == "True", "{}", &pod);
            for at in 0..2 {
                let [wanted, runs] = [&pod["spec"]["containers"][at], &pod["status"]["containerStatuses"][at]];
                prop_assert_eq!(&wanted["image"], &runs["image"]);
            }
        }
    }
}
