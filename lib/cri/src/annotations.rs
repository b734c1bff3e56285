//! What the kubelet writes into the annotations of a container, for itself to read later.

use std::collections::BTreeMap;
use std::time::Duration;

use go_compat::IntOrString;
use serde::Deserialize;

const HASH: &str = "io.kubernetes.container.hash";
const RESTART_COUNT: &str = "io.kubernetes.container.restartCount";
const PRE_STOP: &str = "io.kubernetes.container.preStopHandler";
const PORTS: &str = "io.kubernetes.container.ports";
const TERMINATION_GRACE: &str = "io.kubernetes.pod.terminationGracePeriod";
const DELETION_GRACE: &str = "io.kubernetes.pod.deletionGracePeriod";

/// The annotations of a container. Those of the kubelet are read when they are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations(BTreeMap<String, String>);

/// An annotation of the kubelet that does not have its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {name} of the container cannot be read: {why}")]
pub struct AnnotationError {
    name: &'static str,
    why: String,
}

/// What runs before a container is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handler {
    /// A command in the container.
    Exec(Vec<String>),
    /// A request to the pod.
    HttpGet(HttpGet),
    /// A connection to the pod.
    TcpSocket(TcpSocket),
    /// Nothing, for a while.
    Sleep(Duration),
}

/// A request of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// Empty for the pod's own address.
    #[serde(default)]
    pub host: String,
    /// The port's number or its name in [`Annotations::ports`].
    pub port: IntOrString,
    /// Empty for `/`.
    #[serde(default)]
    pub path: String,
    /// `HTTP` or `HTTPS`; empty for `HTTP`.
    #[serde(default)]
    pub scheme: String,
    /// In the order of the pod; names may repeat.
    #[serde(default, rename = "httpHeaders")]
    pub headers: Vec<Header>,
}

/// A header of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// As in the pod.
    pub name: String,
    /// As in the pod.
    #[serde(default)]
    pub value: String,
}

/// A connection of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TcpSocket {
    /// Empty for the pod's own address.
    #[serde(default)]
    pub host: String,
    /// The port's number or its name in [`Annotations::ports`].
    pub port: IntOrString,
}

/// A port of a container.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Empty if it has none.
    #[serde(default)]
    pub name: String,
    /// Its number in the pod.
    pub container_port: u16,
}

impl Annotations {
    pub(crate) fn new(all: BTreeMap<String, String>) -> Self {
        Self(all)
    }

    /// The text of any annotation.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The kubelet's hash of the container's specification.
    ///
    /// # Errors
    /// It is no hexadecimal number of 64 bits.
    pub fn hash(&self) -> Result<Option<u64>, AnnotationError> {
        self.read(HASH, |text| u64::from_str_radix(text, 16))
    }

    /// How many containers of this name the pod had before this one.
    ///
    /// # Errors
    /// It is no number.
    pub fn restart_count(&self) -> Result<Option<u32>, AnnotationError> {
        self.read(RESTART_COUNT, str::parse)
    }

    /// How long the containers of the pod may take to stop.
    ///
    /// # Errors
    /// It is no number of seconds.
    pub fn termination_grace(&self) -> Result<Option<Duration>, AnnotationError> {
        self.read(TERMINATION_GRACE, seconds)
    }

    /// As [`termination_grace`](Self::termination_grace), for a pod that was already being deleted.
    ///
    /// # Errors
    /// It is no number of seconds.
    pub fn deletion_grace(&self) -> Result<Option<Duration>, AnnotationError> {
        self.read(DELETION_GRACE, seconds)
    }

    /// What runs before the container is stopped.
    ///
    /// # Errors
    /// It is no handler, or of a kind that is not known here.
    pub fn pre_stop(&self) -> Result<Option<Handler>, AnnotationError> {
        self.read(PRE_STOP, handler)
    }

    /// The container's ports.
    ///
    /// # Errors
    /// They are no list of ports.
    pub fn ports(&self) -> Result<Vec<Port>, AnnotationError> {
        let read = self.read(PORTS, |text| serde_json::from_str::<Option<Vec<Port>>>(text))?;
        Ok(read.flatten().unwrap_or_default())
    }

    fn read<T, E: ToString>(
        &self,
        name: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, AnnotationError> {
        let read = self.get(name).map(parse).transpose();
        read.map_err(|error| AnnotationError {
            name,
            why: error.to_string(),
        })
    }
}

fn seconds(text: &str) -> Result<Duration, std::num::ParseIntError> {
    text.parse().map(Duration::from_secs)
}

fn handler(text: &str) -> Result<Handler, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct OneOf {
        exec: Option<ExecAction>,
        http_get: Option<HttpGet>,
        tcp_socket: Option<TcpSocket>,
        sleep: Option<SleepAction>,
    }
    #[derive(Deserialize)]
    struct ExecAction {
        #[serde(default)]
        command: Vec<String>,
    }
    #[derive(Deserialize)]
    struct SleepAction {
        seconds: u64,
    }

    let read: OneOf = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let exec = read.exec.map(|action| Handler::Exec(action.command));
    let sleep = read
        .sleep
        .map(|action| Handler::Sleep(Duration::from_secs(action.seconds)));
    exec.or(read.http_get.map(Handler::HttpGet))
        .or(read.tcp_socket.map(Handler::TcpSocket))
        .or(sleep)
        .ok_or_else(|| "no handler of a known kind".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Annotations {
        Annotations::new(BTreeMap::from([(name.to_owned(), value.to_owned())]))
    }

    #[test]
    fn numbers_of_the_kubelet_are_read() {
        assert_eq!(with(HASH, "c0ffee11").hash(), Ok(Some(0xc0ff_ee11)));
        assert_eq!(with(HASH, "ffffffffffffffff").hash(), Ok(Some(u64::MAX)));
        assert_eq!(with(RESTART_COUNT, "3").restart_count(), Ok(Some(3)));
        let grace = Ok(Some(Duration::from_secs(30)));
        assert_eq!(with(TERMINATION_GRACE, "30").termination_grace(), grace);
        assert_eq!(with(DELETION_GRACE, "30").deletion_grace(), grace);
        let nothing = Annotations::default();
        assert_eq!((nothing.hash(), nothing.restart_count()), (Ok(None), Ok(None)));
        assert_eq!((nothing.pre_stop(), nothing.ports()), (Ok(None), Ok(Vec::new())));
    }

    #[test]
    fn handlers_of_every_kind_are_read() {
        let read = |text| with(PRE_STOP, text).pre_stop().unwrap().unwrap();
        assert_eq!(
            read(r#"{"exec":{"command":["sh","-c","sleep 1"]}}"#),
            Handler::Exec(vec!["sh".into(), "-c".into(), "sleep 1".into()])
        );
        assert_eq!(
            read(
                r#"{"httpGet":{"path":"/stop","port":"web","scheme":"HTTP","httpHeaders":[{"name":"a","value":"b"}]}}"#
            ),
            Handler::HttpGet(HttpGet {
                host: String::new(),
                port: IntOrString::String("web".into()),
                path: "/stop".into(),
                scheme: "HTTP".into(),
                headers: vec![Header {
                    name: "a".into(),
                    value: "b".into()
                }],
            })
        );
        assert_eq!(
            read(r#"{"tcpSocket":{"port":80}}"#),
            Handler::TcpSocket(TcpSocket {
                host: String::new(),
                port: IntOrString::Int(80)
            })
        );
        assert_eq!(
            read(r#"{"sleep":{"seconds":5}}"#),
            Handler::Sleep(Duration::from_secs(5))
        );
    }

    #[test]
    fn ports_are_read_with_their_names() {
        let ports = with(
            PORTS,
            r#"[{"name":"web","containerPort":80,"protocol":"TCP"},{"containerPort":81}]"#,
        );
        let port = |name: &str, container_port| Port {
            name: name.into(),
            container_port,
        };
        assert_eq!(ports.ports(), Ok(vec![port("web", 80), port("", 81)]));
        assert_eq!(with(PORTS, "null").ports(), Ok(Vec::new()));
    }

    #[test]
    fn a_malformed_annotation_is_named() {
        let errors = [
            with(HASH, "xyz").hash().unwrap_err(),
            with(RESTART_COUNT, "-1").restart_count().unwrap_err(),
            with(TERMINATION_GRACE, "soon").termination_grace().unwrap_err(),
            with(DELETION_GRACE, "").deletion_grace().unwrap_err(),
            with(PRE_STOP, r#"{"later":{}}"#).pre_stop().unwrap_err(),
            with(PRE_STOP, "{").pre_stop().unwrap_err(),
            with(PORTS, r#"[{"containerPort":70000}]"#).ports().unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("annotation {} of the container", error.name)),
                "{text}"
            );
        }
    }
}
