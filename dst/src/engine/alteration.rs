//! Altered traces: what managers send is altered on its way, so that oracles see what must not happen.
//!
//! An oracle that no injected bug makes fail may be one that cannot fail. Here the requests of managers, agents and
//! commands are altered by a seed, and others are added in their name; the API server takes them as it takes any,
//! and what the oracles see follows from that. All violations are collected, not only the first. See also
//! [`super::forgery`].

use std::time::Duration;

use kruise_sim::{Method, Request};
use serde_json::{Map, Value, json};

use super::{
    mirror::Mirror,
    object::Object,
    process::component,
    random::{Purpose, Random},
    resource::{MERGE, Resource},
};

/// Of so many writes one is altered.
const ONE_OF: u64 = 3;
/// Requests of before that may be sent again.
const KEPT: usize = 60;
/// A request may be late by so many milliseconds.
const LATE: u64 = 40_000;
/// Parts of an object that writes change.
const PARTS: [&str; 5] = ["spec", "status", "data", "images", "metadata"];
/// Of the metadata, these.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// Alters requests.
#[derive(Debug)]
pub struct Alterations {
    random: Random,
    /// User agents and requests.
    sent: Vec<(String, Request)>,
}

/// What becomes of a request.
#[derive(Debug, Default)]
pub struct Altered {
    /// It is sent so much later.
    pub late: Duration,
    /// It never arrives.
    pub is_lost: bool,
    /// And these are sent too, each in the name of a user agent.
    pub besides: Vec<(String, Request)>,
}

impl Alterations {
    /// Those of a seed.
    pub fn of(seed: u64) -> Self {
        Self {
            random: Random::new(seed, Purpose::ALTERATIONS),
            sent: Vec::new(),
        }
    }

    /// Alters a request, now and then.
    pub fn alter(&mut self, agent: &str, request: &mut Request, mirror: &Mirror) -> Altered {
        let mut altered = Altered::default();
        let is_write = request.method != Method::Get
            && component(agent) != "leader-election"
            && !request.path.contains("/events")
            && !request.path.contains("reviews");
        if !is_write {
            return altered;
        }
        self.sent.push((agent.to_owned(), request.clone()));
        if self.sent.len() > KEPT {
            self.sent.remove(0);
        }
        if self.random.between(1, ONE_OF) > 1 {
            return altered;
        }
        let beside = match self.random.between(0, 99) {
            0..30 => {
                self.change_body(request, mirror);
                None
            }
            30..36 if request.method != Method::Post => {
                *request = deletion(request);
                None
            }
            36..42 => {
                altered.late = Duration::from_millis(self.random.between(1_000, LATE));
                None
            }
            42..52 => self.second(request),
            52..66 => self.earlier(agent),
            66..76 => self.removal(mirror),
            _ => self.patch(mirror),
        };
        altered
            .besides
            .extend(beside.map(|beside| (agent.to_owned(), beside)));
        altered
    }

    /// Changes something in the body.
    fn change_body(&mut self, request: &mut Request, mirror: &Mirror) {
        let Ok(mut body) = serde_json::from_slice::<Value>(&request.body) else {
            return;
        };
        self.change(&mut body, mirror);
        request.body = serde_json::to_vec(&body).unwrap_or_default();
    }

    /// Changes a value somewhere within another one.
    fn change(&mut self, value: &mut Value, mirror: &Mirror) {
        let random = &mut self.random;
        match value {
            Value::Object(members) if !members.is_empty() => {
                let keys: Vec<String> = members.keys().cloned().collect();
                let Some(key) = random.pick(&keys) else { return };
                if random.percent(12) {
                    members.remove(key);
                } else if let Some(member) = members.get_mut(key) {
                    self.change(member, mirror);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                let place = random.between(0, items.len() as u64 - 1) as usize;
                if random.percent(15) {
                    items.remove(place);
                } else if let Some(item) = items.get_mut(place) {
                    self.change(item, mirror);
                }
            }
            Value::Number(number) => {
                let number = number.as_i64().unwrap_or(0);
                let by = *random.pick(&[-2, -1, 1, 2, 60]).unwrap_or(&1);
                *value = (number + by).into();
            }
            Value::Bool(truth) => *truth = !*truth,
            Value::String(text) => *text = another(text, random, mirror),
            _ => *value = json!("another"),
        }
    }

    /// The creation of the same under another name, or the same request again.
    fn second(&mut self, request: &Request) -> Option<Request> {
        let mut second = request.clone();
        if request.method == Method::Post {
            let mut body: Value = serde_json::from_slice(&request.body).ok()?;
            let name = body["metadata"]["name"].as_str()?;
            body["metadata"]["name"] = format!("{name}{}", self.random.between(0, 9)).into();
            second.body = serde_json::to_vec(&body).ok()?;
        }
        Some(second)
    }

    /// A request of before.
    fn earlier(&mut self, agent: &str) -> Option<Request> {
        let same = self.sent.iter().filter(|(of, _)| of == agent);
        let same: Vec<&Request> = same.map(|(_, request)| request).collect();
        self.random.pick(&same).map(|request| (*request).clone())
    }

    /// The deletion of something.
    fn removal(&mut self, mirror: &Mirror) -> Option<Request> {
        let (of, object) = self.object(mirror)?;
        Some(Request::new(Method::Delete, &path(of, &object), None))
    }

    /// A change of something.
    fn patch(&mut self, mirror: &Mirror) -> Option<Request> {
        let (of, object) = self.object(mirror)?;
        let parts = PARTS.into_iter().filter(|name| object.value()[*name].is_object());
        let parts: Vec<&str> = parts.collect();
        let part = *self.random.pick(&parts)?;
        let mut changed = object.value()[part].clone();
        if part == "metadata" {
            let member = self.random.text(&METADATA);
            changed = json!({});
            changed[&member] = object.value()["metadata"][&member].clone();
        }
        self.change(&mut changed, mirror);
        let patch = Value::Object(Map::from_iter([(part.to_owned(), changed)]));
        let of_part = if part == "status" { "/status" } else { "" };
        let path = format!("{}{of_part}", path(of, &object));
        Some(Request::new(Method::Patch, &path, Some(&patch)).content_type(MERGE))
    }

    /// An object that is there.
    fn object(&mut self, mirror: &Mirror) -> Option<(Resource, std::sync::Arc<Object>)> {
        let resources: Vec<Resource> = mirror.resources().collect();
        let used: Vec<Resource> = resources
            .into_iter()
            .filter(|of| of.group != "admissionregistration.k8s.io" && mirror.of(*of).now().next().is_some())
            .collect();
        let of = *self.random.pick(&used)?;
        let all: Vec<_> = mirror.of(of).now().cloned().collect();
        let object = self.random.pick(&all)?.clone();
        Some((of, object))
    }
}

/// The path of an object.
fn path(of: Resource, object: &Object) -> String {
    let all = of.path();
    let name = &object.name;
    match object.value()["metadata"]["namespace"].as_str() {
        Some(namespace) => {
            let root = all.strip_suffix(of.plural).unwrap_or_default();
            format!("{root}namespaces/{namespace}/{}/{name}", of.plural)
        }
        None => format!("{all}/{name}"),
    }
}

/// The deletion of the object that a request changes.
fn deletion(request: &Request) -> Request {
    let path = request.path.strip_suffix("/status").unwrap_or(&request.path);
    Request {
        method: Method::Delete,
        path: path.to_owned(),
        body: Vec::new(),
        ..request.clone()
    }
}

/// Another text of the same kind: the name of another object, the other truth, another number, another time.
fn another(text: &str, random: &mut Random, mirror: &Mirror) -> String {
    if let Ok(number) = text.parse::<i64>() {
        return (number + *random.pick(&[-1, 1, 2]).unwrap_or(&1)).to_string();
    }
    if let Ok(time) = text.parse::<jiff::Timestamp>() {
        let by = *random.pick(&[-3600, -60, -1, 1, 60, 3600]).unwrap_or(&1);
        return time
            .checked_add(jiff::SignedDuration::from_secs(by))
            .unwrap_or(time)
            .to_string();
    }
    match text {
        "True" => return "False".into(),
        "False" => return "True".into(),
        "Succeeded" | "Completed" => return "Failed".into(),
        "Failed" => return random.text(&["Succeeded", "Completed", "Running"]),
        "Running" | "Pending" | "Pulling" | "Waiting" => {
            return random.text(&["Succeeded", "Failed", "Completed"]);
        }
        _ => {}
    }
    // The uid of another object.
    let of = mirror
        .resources()
        .find(|of| mirror.of(*of).objects.contains_key(text));
    if let Some(of) = of {
        let uids: Vec<String> = mirror
            .of(of)
            .objects
            .keys()
            .map(std::string::ToString::to_string)
            .collect();
        return random.pick(&uids).cloned().unwrap_or_default();
    }
    let named = mirror.resources().find(|of| mirror.of(*of).named(text).is_some());
    let others = named.map(|of| {
        mirror
            .of(of)
            .now()
            .map(|one| one.name.to_string())
            .collect::<Vec<_>>()
    });
    let other = others.and_then(|others| random.pick(&others).cloned());
    other.unwrap_or_else(|| match text.rsplit_once(':') {
        Some((image, _)) => format!("{image}:{}", random.between(1, 9)),
        None => format!("{text}x"),
    })
}
