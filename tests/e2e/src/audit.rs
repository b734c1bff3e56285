//! The API server's audit log: what was really requested, by whom, and with which result.
//!
//! The log is read from a position onwards, whole lines only, so that a phase can be counted while the server writes.
//! Leases, watches and lists are kept apart from requests per pod: they do not grow with pods.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::reads;

/// User agents of the manager start like this, whatever the controller.
pub const MANAGER: &str = "kruise-manager";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// `create`, `patch`, `delete`, `list`, …
    pub verb: String,
    /// Resource with its subresource: `pods`, `pods/status`.
    pub resource: String,
    /// Namespace, empty for cluster-wide resources.
    pub namespace: String,
    /// Name; of created objects too, unless the server chose it.
    pub name: String,
    /// HTTP status of the answer.
    pub code: u16,
    /// As the client called itself.
    pub user_agent: String,
    /// Request path with its query.
    pub uri: String,
    /// When the server received it, in RFC 3339.
    pub received: String,
    /// When it had answered, in RFC 3339.
    pub answered: String,
}

/// How a request counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Counts towards requests per pod.
    Counted,
    /// Leader lease.
    Lease,
    /// Watches.
    Watch,
    /// Lists, needed once to start with.
    List,
    /// Discovery, health, own webhook configurations and certificates: needed once per start.
    Setup,
}

impl Entry {
    /// How this request counts.
    pub fn class(&self) -> Class {
        match (self.verb.as_str(), self.resource.as_str()) {
            (_, "leases") => Class::Lease,
            ("watch", _) => Class::Watch,
            ("list", _) => Class::List,
            (_, "") => Class::Setup,
            (_, resource) if SETUP.contains(&resource) => Class::Setup,
            _ => Class::Counted,
        }
    }

    /// Does it change something (whether the server agreed or not)? A dry run does not.
    pub fn is_write(&self) -> bool {
        let is_tried = self.uri.contains("dryRun=All");
        !is_tried && !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// Resources that a manager touches when it starts, never per pod.
const SETUP: &[&str] = &[
    "secrets",
    "customresourcedefinitions",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "selfsubjectaccessreviews",
];

/// A log file and how far it was read.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    position: u64,
    /// Of no other one; of all if there is none.
    namespace: Option<String>,
}

impl AuditLog {
    /// The log at `path`, from its current end on.
    pub fn from_now(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let position = std::fs::metadata(&path)
            .with_context(|| format!("no audit log {}", path.display()))?
            .len();
        Ok(Self {
            path,
            position,
            namespace: None,
        })
    }

    /// Only requests for objects of a namespace, and so none for what is in no namespace, nor those for all
    /// namespaces at once.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }

    /// Requests of clients whose user agent starts with `agent` that were logged since the last call.
    pub fn read_new(&mut self, agent: &str) -> Result<Vec<Entry>> {
        let (text, position) = whole_lines(&self.path, self.position)?;
        self.position = position;
        let is_asked_for = |entry: &Entry| {
            let namespace = self.namespace.as_deref();
            entry.user_agent.starts_with(agent)
                && namespace.is_none_or(|namespace| entry.namespace == namespace)
        };
        let entries: Vec<Entry> = text
            .lines()
            .map(parse)
            .filter(|entry| entry.as_ref().map_or(true, is_asked_for))
            .collect::<Result<_>>()?;
        reads::note(&entries);
        Ok(entries)
    }
}

fn whole_lines(path: &Path, from: u64) -> Result<(String, u64)> {
    let mut file = std::fs::File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let length = file.metadata()?.len();
    if length < from {
        bail!(
            "{} was rotated: it has {length} bytes, {from} were read",
            path.display()
        );
    }
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let end = bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |index| index + 1);
    bytes.truncate(end);
    Ok((
        String::from_utf8(bytes).context("the audit log is not UTF-8")?,
        from + end as u64,
    ))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(rename = "requestURI", default)]
    request_uri: String,
    #[serde(default)]
    user_agent: String,
    #[serde(default)]
    object_ref: ObjectRef,
    #[serde(default)]
    response_status: ResponseStatus,
    #[serde(default)]
    request_received_timestamp: String,
    #[serde(default)]
    stage_timestamp: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

fn parse(line: &str) -> Result<Entry> {
    let line: Line = serde_json::from_str(line).with_context(|| format!("not an audit event: {line}"))?;
    let ObjectRef {
        mut resource,
        subresource,
        namespace,
        name,
    } = line.object_ref;
    if !subresource.is_empty() {
        resource = format!("{resource}/{subresource}");
    }
    let code = line.response_status.code;
    Ok(Entry {
        verb: line.verb,
        resource,
        namespace,
        name,
        code,
        user_agent: line.user_agent,
        uri: line.request_uri,
        received: line.request_received_timestamp,
        answered: line.stage_timestamp,
    })
}

/// Requests by class, verb, resource and code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<(Class, String), u64>);

impl Counts {
    /// Counts requests.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut counts = BTreeMap::new();
        for entry in entries {
            let shape = format!("{} {} {}", entry.verb, entry.resource, entry.code);
            *counts.entry((entry.class(), shape)).or_default() += 1;
        }
        Self(counts)
    }

    /// Requests of one class.
    pub fn total(&self, class: Class) -> u64 {
        self.0
            .iter()
            .filter(|((of, _), _)| *of == class)
            .map(|(_, count)| count)
            .sum()
    }

    /// `verb resource code` and how often, of one class, most frequent first.
    pub fn shapes(&self, class: Class) -> Vec<(&str, u64)> {
        let of_class = self.0.iter().filter(|((of, _), _)| *of == class);
        let mut shapes: Vec<_> = of_class
            .map(|((_, shape), count)| (shape.as_str(), *count))
            .collect();
        shapes.sort_by_key(|(shape, count)| (std::cmp::Reverse(*count), *shape));
        shapes
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shapes = self.shapes(Class::Counted);
        let shapes: Vec<_> = shapes
            .iter()
            .map(|(shape, count)| format!("{shape} x{count}"))
            .collect();
        write!(f, "{}", shapes.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const CREATE: &str = r#"{"verb":"create","requestURI":"/api/v1/namespaces/a/pods","userAgent":"kruise-manager/cloneset","objectRef":{"resource":"pods","namespace":"a","name":"web-1"},"responseStatus":{"code":201}}"#;
    const STATUS: &str = r#"{"verb":"patch","userAgent":"kruise-manager","objectRef":{"resource":"pods","subresource":"status","namespace":"a","name":"web-1"},"responseStatus":{"code":409}}"#;
    const LEASE: &str = r#"{"verb":"update","userAgent":"kruise-manager","objectRef":{"resource":"leases","name":"l"},"responseStatus":{"code":200}}"#;
    const WATCH: &str = r#"{"verb":"watch","userAgent":"kruise-manager","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}"#;
    const LIST: &str = r#"{"verb":"list","userAgent":"kruise-manager","objectRef":{"resource":"pods"},"responseStatus":{"code":200}}"#;
    const FOREIGN: &str = r#"{"verb":"create","userAgent":"kubectl","objectRef":{"resource":"pods"}}"#;

    fn log(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("kruise-audit-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn leases_watches_and_lists_are_counted_apart_and_refused_writes_count() {
        let lines = [CREATE, STATUS, LEASE, WATCH, LIST].map(|line| parse(line).unwrap());
        let counts = Counts::of(&lines);
        assert_eq!(counts.to_string(), "create pods 201 x1, patch pods/status 409 x1");
        assert_eq!(counts.total(Class::Counted), 2);
        assert_eq!(
            [Class::Lease, Class::Watch, Class::List].map(|class| counts.total(class)),
            [1, 1, 1]
        );
    }

    #[test]
    fn other_clients_do_not_count() {
        let path = log("foreign", "");
        let mut log = AuditLog::from_now(&path).unwrap();
        std::fs::write(&path, format!("{FOREIGN}\n{CREATE}\n")).unwrap();
        let entries = log.read_new(MANAGER).unwrap();
        assert_eq!(
            entries.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(),
            ["web-1"]
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn of_a_namespace_only_requests_for_its_objects_count() {
        let path = log("namespace", "");
        let mut log = AuditLog::from_now(&path).unwrap().in_namespace("a");
        let other = CREATE.replace(r#""namespace":"a""#, r#""namespace":"ab""#);
        std::fs::write(&path, format!("{other}\n{LEASE}\n{STATUS}\n{LIST}\n{CREATE}\n")).unwrap();
        let entries = log.read_new(MANAGER).unwrap();
        assert_eq!(entries, [STATUS, CREATE].map(|line| parse(line).unwrap()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_line_still_being_written_is_left_for_the_next_read() {
        let path = log("partial", &format!("{LIST}\n"));
        let mut log = AuditLog::from_now(&path).unwrap();
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "{CREATE}\n{}", &STATUS[..20]).unwrap();
        assert_eq!(log.read_new(MANAGER).unwrap().len(), 1);
        writeln!(file, "{}", &STATUS[20..]).unwrap();
        assert_eq!(log.read_new(MANAGER).unwrap(), [parse(STATUS).unwrap()]);
        assert_eq!(log.read_new(MANAGER).unwrap(), []);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_rotated_log_is_an_error_not_a_zero() {
        let path = log("rotated", &format!("{LIST}\n"));
        let mut log = AuditLog::from_now(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(log.read_new(MANAGER).unwrap_err().to_string().contains("rotated"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn garbage_is_an_error_not_a_zero() {
        let path = log("garbage", "");
        let mut log = AuditLog::from_now(&path).unwrap();
        std::fs::write(&path, "{}\n").unwrap();
        assert!(log.read_new(MANAGER).is_err());
        std::fs::remove_file(path).unwrap();
    }
}
