//! List: a consistent snapshot, in pages on request.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube_schema::validate::Errors;
use serde_json::{Value, json};

use crate::api::{Api, Call, Reply};
use crate::form::Form;
use crate::json_error::go_error;
use crate::selector::Selector;
use crate::status::Failure;
use crate::store::{Key, Stored};
use crate::webhook::Stop;
use crate::wire::{self, Method};

const EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You can start a \
                       new list without the continue parameter, or use the continue token in this response to \
                       retrieve the remainder of the results. Continuing with the provided token results in an \
                       inconsistent list - objects that were created, modified, or deleted between the time the \
                       first chunk was returned and now may show up in the list.";

/// What objects of built-in kinds do not repeat in a list.
const REPEATED: &[&str] = &["apiVersion", "kind"];

/// Where a page ends and which revision it is of.
struct Token {
    revision: u64,
    after: Key,
}

impl Token {
    fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| {
            Failure::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let decoded = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| bad("illegal base64 data at input byte 0"))?;
        let value: Value = serde_json::from_slice(&decoded).map_err(|_| bad(&go_error(&decoded)))?;
        let start = value.get("start").and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = start
            .trim_end_matches('\0')
            .split_once('/')
            .unwrap_or(("", start));
        Ok(Self {
            revision: value.get("rv").and_then(Value::as_u64).unwrap_or_default(),
            after: Key::new(namespace, name),
        })
    }

    fn text(&self) -> String {
        let start = format!("{}/{}\0", self.after.namespace, self.after.name);
        URL_SAFE_NO_PAD
            .encode(json!({"v": "meta.k8s.io/v1", "rv": self.revision, "start": start}).to_string())
    }
}

/// One page.
struct Page {
    items: Vec<Arc<Stored>>,
    next: Option<Key>,
    remaining: usize,
}

pub(super) fn list(api: &Api, call: &Call<'_>) -> Result<Reply, Stop> {
    let (items, metadata) = shown(api, call)?;
    let items = call.read_all(items.iter().map(AsRef::as_ref))?;
    let items: Vec<Value> = items.into_iter().map(|one| item(call, one)).collect();
    let mut list = json!({"kind": call.resource.list_kind(), "apiVersion": call.api_version()});
    if let Value::Object(members) = &mut list {
        // `json!` would copy them
        members.insert("metadata".into(), metadata);
        members.insert("items".into(), items.into());
    }
    Ok(Reply::new(200, list))
}

/// A list of objects that are read just as they are stored: its text, of which no tree is made.
pub(crate) fn as_stored(api: &Api, call: &Call<'_>) -> Result<Option<Vec<u8>>, Failure> {
    let plain = call.request.method == Method::Get
        && call.form == Form::Whole
        && call.target.name.is_empty()
        && call.target.subresource.is_empty()
        && call.resource.is_stored_as(&call.version.name)
        && !call.query.has("dryRun");
    if !plain {
        return Ok(None);
    }
    let (items, metadata) = shown(api, call)?;
    let repeated = opening(call);
    let mut out = b"{\"apiVersion\":".to_vec();
    wire::append(&call.api_version().into(), &[], &mut out);
    out.extend_from_slice(b",\"items\":[");
    for (index, stored) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if call.resource.is_custom() {
            out.extend_from_slice(&stored.json);
        } else if let Some(rest) = stored.json.strip_prefix(repeated.as_bytes()) {
            out.push(b'{');
            out.extend_from_slice(rest);
        } else {
            wire::append(&stored.value(), REPEATED, &mut out);
        }
    }
    out.extend_from_slice(b"],\"kind\":");
    wire::append(&call.resource.list_kind().into(), &[], &mut out);
    out.extend_from_slice(b",\"metadata\":");
    wire::append(&metadata, &[], &mut out);
    out.push(b'}');
    Ok(Some(out))
}

/// How the text of most objects begins: with what a list does not repeat, and nothing else.
fn opening(call: &Call<'_>) -> String {
    let (version, kind) = (call.api_version(), &call.resource.kind);
    format!(r#"{{"apiVersion":"{version}","kind":"{kind}","#)
}

/// The objects of a page, and the metadata of its list.
fn shown(api: &Api, call: &Call<'_>) -> Result<(Vec<Arc<Stored>>, Value), Failure> {
    call.query.number("timeoutSeconds")?;
    // zero is all
    let limit = call.query.number("limit")?.unwrap_or_default();
    let limit = usize::try_from(limit).unwrap_or_default();
    let selector = Selector::of_call(call)?;
    check(call)?;
    let token = match call.query.text("continue") {
        "" => None,
        text => Some(Token::parse(text)?),
    };
    let revision = revision(api, call, token.as_ref())?;
    let after = token.as_ref().map(|token| &token.after);
    let empty = api.store.empty();
    let collection = api.store.collection(&call.resource.id).unwrap_or(&empty);
    let namespace = &call.target.namespace;
    let page = if collection.unchanged_since(revision) {
        cut(collection.range(namespace, after), &selector, limit)
    } else {
        let past = collection.at(revision).ok_or_else(|| Failure::expired(EXPIRED))?;
        cut(in_past(&past, namespace, after), &selector, limit)
    };
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let (true, Value::Object(members)) = (call.resource.is_custom(), &mut metadata) {
        // lists of custom resources always have it
        members.insert("continue".into(), "".into());
    }
    if let (Some(after), Value::Object(members)) = (page.next, &mut metadata) {
        members.insert("continue".into(), Token { revision, after }.text().into());
        if selector.is_empty() {
            members.insert("remainingItemCount".into(), page.remaining.into());
        }
    }
    Ok((page.items, metadata))
}

fn in_past<'a>(
    past: &'a BTreeMap<Key, Arc<Stored>>,
    namespace: &'a str,
    after: Option<&'a Key>,
) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> {
    past.iter().filter(move |(key, _)| {
        (namespace.is_empty() || key.namespace.as_ref() == namespace)
            && after.is_none_or(|after| *key > after)
    })
}

fn cut<'a>(
    objects: impl Iterator<Item = (&'a Key, &'a Arc<Stored>)>,
    selector: &Selector,
    limit: usize,
) -> Page {
    let mut page = Page {
        items: Vec::new(),
        next: None,
        remaining: 0,
    };
    let mut last = None;
    for (key, stored) in objects {
        if limit > 0 && page.items.len() == limit {
            // whether anything of the rest is shown is not checked
            page.next.clone_from(&last);
            page.remaining += 1;
            continue;
        }
        if !selector.matches(&key.namespace, &key.name, &stored.head) {
            continue;
        }
        page.items.push(stored.clone());
        last = Some(key.clone());
    }
    page
}

/// An object in a list.
pub(super) fn item(call: &Call<'_>, mut object: Value) -> Value {
    if let (false, Value::Object(members)) = (call.resource.is_custom(), &mut object) {
        for name in REPEATED {
            members.remove(*name);
        }
    }
    object
}

/// The revision to list at.
fn revision(api: &Api, call: &Call<'_>, token: Option<&Token>) -> Result<u64, Failure> {
    let current = api.store.revision();
    if let Some(token) = token {
        let given = call.query.text("resourceVersion");
        if !given.is_empty() && given != "0" {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Failure::bad_request(why));
        }
        return Ok(token.revision);
    }
    let wanted = parse_version(call.query.text("resourceVersion"))?;
    if wanted > current {
        return Err(Failure::version_too_large(wanted, current));
    }
    let exact = call.query.text("resourceVersionMatch") == "Exact"
        || (wanted > 0 && call.query.has("limit") && !call.query.has("resourceVersionMatch"));
    Ok(if exact { wanted } else { current })
}

/// A `resourceVersion` parameter; absent is zero.
fn parse_version(text: &str) -> Result<u64, Failure> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Failure::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// What is wrong with the parameters of a list.
pub(crate) fn check(call: &Call<'_>) -> Result<(), Failure> {
    const MATCHES: &[&str] = &["Exact", "NotOlderThan", ""];
    let mut errors = Errors::default();
    let query = &call.query;
    let matching = query.text("resourceVersionMatch");
    if !matching.is_empty() {
        let path = "resourceVersionMatch";
        if query.text("resourceVersion").is_empty() {
            errors.forbidden(
                path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            );
        }
        if query.has("continue") {
            errors.forbidden(
                path,
                "resourceVersionMatch is forbidden when continue is provided",
            );
        }
        errors.one_of(path, matching, MATCHES);
        if matching == "Exact" && query.text("resourceVersion") == "0" {
            errors.forbidden(
                path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            );
        }
    }
    if query.has("sendInitialEvents") {
        errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    Failure::of_list_options(&errors.0)
}
