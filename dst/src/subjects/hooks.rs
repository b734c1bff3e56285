//! The outside system that hooks wait for: a load balancer, for example, that a pod must leave before it is changed or
//! deleted, and that must know it before it counts.
//!
//! It releases a held pod by removing the hook's mark, and puts the mark back when the pod was changed or is no
//! longer held. It polls, after random pauses.

use crate::rules::labels::UPDATE_HOOK;
use crate::rules::prelude::*;

/// When the hook before updates is answered.
const ANSWERS: Purpose = Purpose(5);
/// When the others are answered.
const ATTENDANCE: Purpose = Purpose(22);
/// For which pods they are answered then.
const ATTENDED: Purpose = Purpose(23);

/// What holds a pod before it is deleted: key of a label, and a finalizer.
const DRAIN: [&str; 2] = ["drain", "dst.example/drain"];
/// What a pod needs to become available.
const REGISTERED: [&str; 2] = ["registered", "dst.example/registered"];

/// What a hook looks for on a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mark {
    /// A label.
    Label,
    /// A finalizer.
    Finalizer,
}

impl Mark {
    /// One of them.
    pub fn any(random: &mut Random) -> Self {
        random.either(50, Self::Label, Self::Finalizer)
    }
}

/// The hooks of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hooks {
    /// One holds pods before they are updated in place, and marks them not ready.
    pub update: bool,
    /// One holds pods with this mark before they are deleted. True: pods that it holds are unavailable.
    pub pre_delete: Option<(Mark, bool)>,
    /// Pods become available only with this mark.
    pub pre_normal: Option<Mark>,
}

impl Hooks {
    /// Starts what answers them, for as long as the play lasts.
    pub fn attend(self, cluster: &Arc<Cluster>, seed: u64) {
        if self.update {
            tokio::spawn(answer(cluster.clone(), seed));
        }
        if self.pre_delete.is_some() || self.pre_normal.is_some() {
            tokio::spawn(attend(cluster.clone(), seed, self));
        }
    }
}

/// `spec.lifecycle` of a workload with these hooks, and what its pods are made with.
pub fn put_on(set: &mut Value, hooks: Hooks) {
    let handler = |mark: Mark, [label, finalizer]: [&str; 2]| match mark {
        Mark::Label => json!({"labelsHandler": {label: "on"}}),
        Mark::Finalizer => json!({"finalizersHandler": [finalizer]}),
    };
    if hooks.update {
        set["spec"]["lifecycle"]["inPlaceUpdate"] =
            json!({"labelsHandler": {UPDATE_HOOK: "on"}, "markPodNotReady": true});
        set["spec"]["template"]["metadata"]["labels"][UPDATE_HOOK] = "on".into();
    }
    if let Some((mark, not_ready)) = hooks.pre_delete {
        let mut before = handler(mark, DRAIN);
        if not_ready {
            before["markPodNotReady"] = true.into();
        }
        set["spec"]["lifecycle"]["preDelete"] = before;
        let metadata = &mut set["spec"]["template"]["metadata"];
        match mark {
            Mark::Label => metadata["labels"][DRAIN[0]] = "on".into(),
            Mark::Finalizer => metadata["finalizers"] = json!([DRAIN[1]]),
        }
    }
    if let Some(mark) = hooks.pre_normal {
        set["spec"]["lifecycle"]["preNormal"] = handler(mark, REGISTERED);
    }
}

/// Answers the hook before updates, for ever.
async fn answer(cluster: Arc<Cluster>, seed: u64) {
    let mut random = Random::new(seed, ANSWERS);
    loop {
        sleep(Duration::from_millis(random.between(300, 2_500))).await;
        cluster.with(State::answer_hook);
    }
}

/// Answers the hooks before deletions and before pods become available, for ever.
async fn attend(cluster: Arc<Cluster>, seed: u64, hooks: Hooks) {
    let mut random = Random::new(seed, ATTENDANCE);
    loop {
        sleep(Duration::from_millis(random.between(300, 2_500))).await;
        let seed = random.draw();
        cluster.with(|state| state.attend(hooks, &mut Random::new(seed, ATTENDED)));
    }
}

/// Must a pod have the mark of the hook before deletions? None if it is right already, or in a phase between.
fn is_drained(pod: &Object, mark: Mark) -> Option<bool> {
    let has = has(pod, mark, DRAIN);
    match pod.label(STATE) {
        _ if pod.is_going() => has.then_some(false),
        "PreparingDelete" => has.then_some(false),
        "Normal" => (!has).then_some(true),
        _ => None,
    }
}

/// Must a pod have the mark that lets it become available?
fn is_known(pod: &Object, mark: Mark) -> Option<bool> {
    let has = has(pod, mark, REGISTERED);
    if pod.is_going() {
        return has.then_some(false);
    }
    let serves = pod.state("ContainersReady") == "True";
    (pod.label(STATE) == "PreparingNormal" && serves && !has).then_some(true)
}

fn has(pod: &Object, mark: Mark, [label, finalizer]: [&str; 2]) -> bool {
    match mark {
        Mark::Label => pod.has_label(label),
        Mark::Finalizer => finalizers(pod).any(|one| one == finalizer),
    }
}

fn finalizers(pod: &Object) -> impl Iterator<Item = &str> {
    items(&pod.metadata()["finalizers"]).filter_map(Value::as_str)
}

/// The patch that puts a mark on a pod, or removes it.
fn marked(pod: &Object, mark: Mark, [label, finalizer]: [&str; 2], on: bool) -> Value {
    match mark {
        Mark::Label => {
            let value = if on { Value::from("on") } else { Value::Null };
            json!({"metadata": {"labels": {label: value}}})
        }
        Mark::Finalizer => {
            let others = finalizers(pod).filter(|one| *one != finalizer);
            let all: Vec<&str> = others.chain(on.then_some(finalizer)).collect();
            json!({"metadata": {"finalizers": all}})
        }
    }
}

/// For each thing that a hook looks for: is it there?
fn handlers<'a>(pod: &'a Object, hook: &'a Value) -> impl Iterator<Item = bool> + 'a {
    let labels = hook["labelsHandler"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| pod.label(key) == value);
    let finalizers = items(&hook["finalizersHandler"]);
    let on_pod = &pod.metadata()["finalizers"];
    let finalizers =
        finalizers.map(move |wanted| on_pod.as_array().is_some_and(|list| list.contains(wanted)));
    labels.chain(finalizers)
}

/// Has a pod something that a hook looks for?
pub fn has_any(pod: &Object, hook: &Value) -> bool {
    handlers(pod, hook).any(|there| there)
}

/// Has it everything?
pub fn has_all(pod: &Object, hook: &Value) -> bool {
    handlers(pod, hook).all(|there| there)
}

/// The label as it must be, if it is not.
fn wanted(pod: &Object) -> Option<Value> {
    let state = pod.label(STATE);
    match (state, pod.has_label(UPDATE_HOOK)) {
        ("PreparingUpdate", true) => Some(Value::Null),
        ("Normal" | "Updated", false) => Some("on".into()),
        _ => None,
    }
}

impl State {
    /// Does for each pod what the hook requires; what is refused is tried again the next time.
    fn answer_hook(&mut self) {
        let pods = self.mirror.of(PODS).now();
        let due: Vec<_> = pods
            .filter(|pod| pod.is_active())
            .filter_map(|pod| Some((pod.name.clone(), wanted(pod)?)))
            .collect();
        for (name, label) in due {
            let body = json!({"metadata": {"labels": {UPDATE_HOOK: label}}});
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            let request = Request::new(Method::Patch, &path, Some(&body));
            self.answer(&request.content_type(MERGE));
        }
    }

    /// Does for some of the pods what the hooks of the workload require.
    fn attend(&mut self, hooks: Hooks, random: &mut Random) {
        let drains = hooks.pre_delete.map(|(mark, _)| mark);
        let pods = self.mirror.of(PODS).now();
        let mut due = Vec::new();
        for pod in pods.filter(|pod| pod.name.starts_with("web-")) {
            let drained = drains.and_then(|mark| Some((mark, DRAIN, is_drained(pod, mark)?)));
            let known = hooks
                .pre_normal
                .and_then(|mark| Some((mark, REGISTERED, is_known(pod, mark)?)));
            let Some((mark, keys, on)) = drained.or(known) else {
                continue;
            };
            if random.percent(60) {
                due.push((pod.name.clone(), marked(pod, mark, keys, on)));
            }
        }
        for (name, body) in due {
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            let request = Request::new(Method::Patch, &path, Some(&body));
            self.answer(&request.content_type(MERGE));
        }
    }
}
