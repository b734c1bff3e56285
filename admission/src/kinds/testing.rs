//! What the tests of every kind do: review a specification, and break it in one place.

use serde_json::{Value, json};

use super::{ALL, KindWebhooks};
use crate::lookup::{Lookup, LookupResult, Lookups, Pod, Refusal};
use crate::table::Phase;
use crate::{Options, Outcome, Request, Response};

/// When reviews come in.
pub(crate) const NOW: &str = "2026-02-02T00:00:00Z";

/// A kind and a good specification of it.
pub(crate) struct Case {
    kind: &'static str,
    good: fn() -> Value,
    pub(crate) options: Options,
}

/// The sample of each kind and version, with its case.
pub(crate) fn samples() -> impl Iterator<Item = (Case, Value)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let of_versions = |one: &'static KindWebhooks| one.versions().iter().map(move |version| (one, version));
    ALL.iter()
        .copied()
        .flat_map(of_versions)
        .map(move |(one, version)| {
            let file = format!("samples/{version}/{}.yaml", one.kind.kind.to_lowercase());
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            (
                case(one.kind.kind, || Value::Null),
                serde_saphyr::from_str::<Value>(&text).unwrap(),
            )
        })
}

/// The sample of a kind in its newest version.
pub(crate) fn sample(kind: &str) -> (Case, Value) {
    samples().filter(|(case, _)| case.is_of(kind)).last().unwrap()
}

/// The webhooks of a kind.
pub(crate) fn webhooks_of(kind: &str) -> &'static KindWebhooks {
    let found = ALL.iter().copied().find(|one| one.kind.kind == kind);
    found.unwrap_or_else(|| panic!("{kind} is not in the table"))
}

/// A review until it is decided.
pub(crate) fn decided(
    webhooks: &KindWebhooks,
    phase: Phase,
    request: &Request,
    options: Options,
    look_up: &dyn Fn(&Lookup) -> LookupResult,
) -> Response {
    let mut lookups = Lookups::default();
    for _ in 0..4 {
        let outcome = match phase {
            Phase::Mutating => webhooks.mutate(request, options, &lookups),
            Phase::Validating => webhooks.validate(request, options, &lookups),
        };
        match outcome {
            Outcome::Response(response) | Outcome::Widen(_, response) | Outcome::Refused(_, response) => {
                return response;
            }
            Outcome::Write(_) | Outcome::Retry(..) => panic!("{outcome:?}"),
            Outcome::Missing(missing) => {
                for lookup in missing {
                    assert!(!lookups.contains(&lookup), "asked for twice: {lookup:?}");
                    let result = look_up(&lookup);
                    lookups.insert(lookup, result);
                }
            }
        }
    }
    panic!("never decided")
}

/// What comes of a review with these results, and with a server that accepts every pod template.
pub(crate) fn accepting(lookups: &Lookups, review: impl Fn(&Lookups) -> Outcome) -> Outcome {
    let mut lookups = lookups.clone();
    loop {
        let outcome = review(&lookups);
        let is_template = |lookup: &Lookup| matches!(lookup, Lookup::PodTemplate { .. });
        let Outcome::Missing(missing) = outcome else {
            return outcome;
        };
        if !missing.iter().all(is_template) {
            return Outcome::Missing(missing);
        }
        for lookup in missing {
            lookups.insert(lookup, LookupResult::Causes(Vec::new()));
        }
    }
}

/// A cluster in which every pod runs, with whatever containers tests name, and nothing else is in the way.
pub(crate) fn quiet(lookup: &Lookup) -> LookupResult {
    let names = ["web", "cache", "main", "sidecar", "app"];
    match lookup {
        Lookup::Path(path) if path.contains("/pods/") => LookupResult::Object(json!({
            "metadata": {"uid": "u"},
            "spec": {"nodeName": "n", "containers": names.map(|name| json!({"name": name}))},
            "status": {"containerStatuses": names.map(|name| json!({"name": name, "containerID": "c://1"}))},
        })),
        Lookup::Path(path) if path.contains("/storageclasses/") => {
            LookupResult::Object(json!({"allowVolumeExpansion": true}))
        }
        Lookup::Revision(_) => {
            LookupResult::Object(json!({"metadata": {"labels": {"kruise.io/sidecarset-name": "s"}}}))
        }
        Lookup::NodeLabels(_) | Lookup::NamespaceLabels(_) => LookupResult::Labels([].into()),
        Lookup::PodOwner { .. } => LookupResult::Pod(Pod {
            controller: Some("u".to_owned()),
            deleting: false,
        }),
        Lookup::All(kind, _) => kind.all(Vec::new()),
        Lookup::DryRunCreate { .. } => LookupResult::Accepted,
        Lookup::BlindAgent(_) => LookupResult::Has(false),
        Lookup::Dependants(_) => LookupResult::Count(Ok(0)),
        _ => LookupResult::NotFound,
    }
}

/// A case under the defaults of gates and flags, but with every gate without which a kind is not taken.
pub(crate) const fn case(kind: &'static str, good: fn() -> Value) -> Case {
    Case {
        kind,
        good,
        options: OPTIONS,
    }
}

/// Options of a [`case`].
pub(crate) const OPTIONS: Options = Options {
    pull_jobs: true,
    distributions: true,
    ..Options::DEFAULT
};

impl Case {
    /// The same under other gates and flags.
    pub(crate) const fn with(&self, options: Options) -> Self {
        Self { options, ..*self }
    }

    /// Why a review is refused where exactly these objects are looked up: `null` does not exist. A path that begins
    /// with no slash is the name of a setting, a number the status with which a dry run is refused.
    pub(crate) fn seeing(
        &self,
        seen: &[(&str, Value)],
        operation: &str,
        object: &Value,
        old: &Value,
    ) -> Option<String> {
        let request = self.request(operation, object, old);
        match self.decided(self.refuses(), &request, &|lookup| shown(seen, lookup)) {
            Response::Deny { message, .. } => Some(message),
            Response::Allow { .. } => None,
        }
    }

    /// A new object as it is filled in where these objects are looked at.
    pub(crate) fn filled_in(&self, seen: &[(&str, Value)], object: &Value) -> Value {
        let request = self.request("CREATE", object, &Value::Null);
        self.decided(Phase::Mutating, &request, &|lookup| shown(seen, lookup))
            .applied_to(object)
    }

    /// The webhook that refuses.
    fn refuses(&self) -> Phase {
        match self.entry().validating {
            Some(_) => Phase::Validating,
            None => Phase::Mutating,
        }
    }

    /// Its webhooks.
    pub(crate) fn entry(&self) -> &'static KindWebhooks {
        webhooks_of(self.kind)
    }

    fn decided(
        &self,
        phase: Phase,
        request: &Request,
        look_up: &dyn Fn(&Lookup) -> LookupResult,
    ) -> Response {
        decided(self.entry(), phase, request, self.options, look_up)
    }

    /// An object around a specification.
    pub(crate) fn object(&self, version: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group()),
            "kind": self.kind,
            "metadata": {"name": "good", "namespace": "default"},
            "spec": spec,
        })
    }

    fn group(&self) -> &'static str {
        self.entry().kind.group
    }

    /// A review of an object, or of its change.
    pub(crate) fn request(&self, operation: &str, object: &Value, old: &Value) -> Request {
        let known = if object.is_null() { old } else { object };
        let version = known["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
        let mut request = Request::from_review(json!({
            "kind": {"group": self.group(), "version": version, "kind": self.kind},
            "name": known["metadata"]["name"], "namespace": "default", "operation": operation,
            "object": object, "oldObject": old,
        }))
        .unwrap();
        request.now = NOW.parse().unwrap();
        request
    }

    /// The object after the patch. Patching twice is patching once, but for what only the system may fill in.
    pub(crate) fn mutated_object(&self, operation: &str, object: &Value, old: &Value) -> Value {
        let once = |object: &Value| {
            let request = self.request(operation, object, old);
            self.decided(Phase::Mutating, &request, &quiet).applied_to(object)
        };
        let after = once(object);
        if self.entry().validating.is_some() {
            assert_eq!(once(&after), after);
        }
        after
    }

    /// The specification of a new object after the patch.
    pub(crate) fn mutated(&self, version: &str, spec: &Value) -> Value {
        let object = self.object(version, spec);
        self.mutated_object("CREATE", &object, &Value::Null)["spec"].take()
    }

    /// Why a review is refused, with its status.
    pub(crate) fn refusal(&self, operation: &str, object: &Value, old: &Value) -> Option<(u16, String)> {
        let request = self.request(operation, object, old);
        match self.decided(self.refuses(), &request, &quiet) {
            Response::Deny { code, message, .. } => Some((code, message)),
            Response::Allow { .. } => None,
        }
    }

    /// Is it of this kind?
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// What the author of an object is warned of.
    #[track_caller]
    pub(crate) fn warnings(&self, operation: &str, object: &Value, old: &Value) -> Vec<String> {
        let request = self.request(operation, object, old);
        match self.decided(self.refuses(), &request, &quiet) {
            Response::Allow { warnings, .. } => warnings,
            Response::Deny { message, .. } => panic!("{message}"),
        }
    }

    /// Why a new object of this specification is refused.
    pub(crate) fn refused(&self, version: &str, spec: &Value) -> Option<String> {
        let refusal = self.refusal("CREATE", &self.object(version, spec), &Value::Null);
        refusal.map(|(_, message)| message)
    }

    /// Why the change of a specification is refused.
    pub(crate) fn update_refused(&self, old: &Value, new: &Value) -> Option<String> {
        let version = self.newest();
        let (old, new) = (self.object(version, old), self.object(version, new));
        self.refusal("UPDATE", &new, &old).map(|(_, message)| message)
    }

    fn newest(&self) -> &'static str {
        self.entry().versions().last().unwrap()
    }

    /// Breaks the good specification in one place after the other: dotted path, value (`null` removes), and what the
    /// refusal says. What is broken already may stay so.
    pub(crate) fn each_is_refused(&self, rules: &[(&str, Value, &str)]) {
        assert_eq!(self.refused(self.newest(), &(self.good)()), None);
        for (path, value, expected) in rules {
            let mut spec = (self.good)();
            put(&mut spec, path, value);
            let message = self.refused(self.newest(), &spec);
            let message = message.unwrap_or_else(|| panic!("{path} = {value} passed"));
            assert!(
                message.contains(expected),
                "{path}: {message}\nexpected {expected}"
            );
            assert_eq!(self.update_refused(&spec, &spec), None, "{path}: is stored");
        }
    }
}

/// What a test says a lookup finds.
fn shown(seen: &[(&str, Value)], lookup: &Lookup) -> LookupResult {
    let wanted = match lookup {
        Lookup::Path(path) => path.clone(),
        Lookup::NodeLabels(name) => format!("/api/v1/nodes/{name}"),
        Lookup::Setting(name) => (*name).to_owned(),
        Lookup::BlindAgent(node) => format!("agent of {node}"),
        Lookup::DryRunCreate { plural, .. } => (*plural).to_owned(),
        Lookup::PodTemplate { .. } => return LookupResult::Causes(Vec::new()),
        Lookup::All(..) | Lookup::NamespaceLabels(_) => return quiet(lookup),
        other => panic!("{other:?} is not to be looked up"),
    };
    let found = seen.iter().find(|(path, _)| *path == wanted);
    if found.is_none() && matches!(lookup, Lookup::BlindAgent(_)) {
        return quiet(lookup);
    }
    let (_, found) = found.unwrap_or_else(|| panic!("{lookup:?} is not to be looked up"));
    match (lookup, found) {
        (Lookup::DryRunCreate { .. }, Value::Number(code)) => LookupResult::Refused(Refusal {
            code: code.as_u64().unwrap().try_into().unwrap(),
            message: "because".to_owned(),
        }),
        (Lookup::DryRunCreate { .. }, _) => LookupResult::Accepted,
        (Lookup::BlindAgent(_), found) => LookupResult::Has(found.as_bool().unwrap()),
        (_, Value::Null) => LookupResult::NotFound,
        (Lookup::NodeLabels(_), node) => {
            let labels = node.pointer("/metadata/labels").cloned();
            LookupResult::Labels(serde_json::from_value(labels.unwrap_or_else(|| json!({}))).unwrap())
        }
        (Lookup::Setting(_), found) => LookupResult::Text(found.as_str().unwrap().to_owned()),
        (_, found) => LookupResult::Object(found.clone()),
    }
}

/// Sets a member by a dotted path, or removes it with `null`.
pub(crate) fn put(spec: &mut Value, path: &str, value: &Value) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = spec;
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    match (value, name.parse::<usize>()) {
        (Value::Null, _) => {
            at.as_object_mut().unwrap().remove(name);
        }
        (_, Ok(index)) => at[index] = value.clone(),
        (_, Err(_)) => at[name] = value.clone(),
    }
}
