//! PreStop hooks and the handlers of probes, as pods and kubelets write them.

use serde::Deserialize;
use serde_json::Value;

use crate::Handler;

/// What is to be done before a container is stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    Run(Handler),
    /// Wait so many seconds.
    Sleep(u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    exec: Option<Exec>,
    http_get: Option<HttpGet>,
    tcp_socket: Option<TcpSocket>,
    sleep: Option<Sleep>,
}

#[derive(Deserialize)]
struct Exec {
    #[serde(default)]
    command: Option<Vec<Box<str>>>,
}

#[derive(Deserialize)]
struct Sleep {
    seconds: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct HttpGet {
    path: Box<str>,
    port: Value,
    host: Box<str>,
    scheme: Box<str>,
    http_headers: Option<Vec<Header>>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct TcpSocket {
    port: Value,
    host: Box<str>,
}

#[derive(Deserialize)]
struct Header {
    name: Box<str>,
    value: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Port {
    #[serde(default)]
    name: Box<str>,
    container_port: u16,
}

/// The hook of a handler; none if it does nothing. `ports` are those of the container, `ip` is the address of the pod.
///
/// # Errors
/// Why it cannot be run, in plain words.
pub(crate) fn hook(handler: &Value, ports: &Value, ip: Option<&str>) -> Result<Option<Hook>, String> {
    let handler = Wire::deserialize(handler).map_err(|error| format!("it cannot be read: {error}"))?;
    if let Some(exec) = handler.exec {
        let command = exec.command.unwrap_or_default();
        return Ok((!command.is_empty()).then(|| Hook::Run(Handler::Exec(command.into()))));
    }
    if let Some(sleep) = handler.sleep {
        let seconds = u64::try_from(sleep.seconds).ok();
        return Ok(seconds.filter(|seconds| *seconds > 0).map(Hook::Sleep));
    }
    if let Some(socket) = handler.tcp_socket {
        return Ok(Some(Hook::Run(Handler::Tcp {
            port: port(&socket.port, ports)?,
            host: host(socket.host, ip)?,
        })));
    }
    let Some(get) = handler.http_get else {
        return Ok(None);
    };
    let headers = get.http_headers.unwrap_or_default().into_iter();
    Ok(Some(Hook::Run(Handler::Http {
        scheme: match &*get.scheme {
            "" => "http".into(),
            scheme => scheme.to_ascii_lowercase().into(),
        },
        port: port(&get.port, ports)?,
        host: host(get.host, ip)?,
        path: get.path,
        headers: headers.map(|header| (header.name, header.value)).collect(),
    })))
}

fn host(host: Box<str>, ip: Option<&str>) -> Result<Box<str>, String> {
    if host.is_empty() {
        Ok(ip.ok_or("its pod has no address")?.into())
    } else {
        Ok(host)
    }
}

/// A number, or the name of a port of the container.
fn port(port: &Value, ports: &Value) -> Result<u16, String> {
    let number = port.as_u64().and_then(|number| u16::try_from(number).ok());
    let found = number.or_else(|| {
        let name = port.as_str()?;
        let ports = Vec::<Port>::deserialize(ports).unwrap_or_default();
        let named = ports.iter().find(|port| *port.name == *name);
        named
            .map(|port| port.container_port)
            .or_else(|| name.parse().ok())
    });
    found.ok_or_else(|| format!("its port {port} is not known"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(handler: Value) -> Result<Option<Hook>, String> {
        let ports = json!([{"name": "web", "containerPort": 8080, "protocol": "TCP"}]);
        hook(&handler, &ports, Some("10.0.0.7"))
    }

    #[test]
    fn hooks_of_each_kind_are_read() {
        assert_eq!(
            of(json!({"exec": {"command": ["sh", "-c", "true"]}})),
            Ok(Some(Hook::Run(Handler::Exec(
                ["sh", "-c", "true"].map(Into::into).into()
            ))))
        );
        assert_eq!(of(json!({"sleep": {"seconds": 5}})), Ok(Some(Hook::Sleep(5))));
        let get = |host: &str, port, scheme: &str| {
            Ok(Some(Hook::Run(Handler::Http {
                scheme: scheme.into(),
                host: host.into(),
                port,
                path: "/bye".into(),
                headers: Box::default(),
            })))
        };
        assert_eq!(
            of(json!({"httpGet": {"path": "/bye", "port": "web", "scheme": "HTTPS"}})),
            get("10.0.0.7", 8080, "https")
        );
        assert_eq!(
            of(json!({"httpGet": {"path": "/bye", "port": 80, "host": "a.b"}})),
            get("a.b", 80, "http")
        );
        let connect = |host: &str, port| {
            let host = host.into();
            Ok(Some(Hook::Run(Handler::Tcp { host, port })))
        };
        assert_eq!(
            of(json!({"tcpSocket": {"port": "web"}})),
            connect("10.0.0.7", 8080)
        );
        assert_eq!(
            of(json!({"tcpSocket": {"port": 1, "host": "::1"}})),
            connect("::1", 1)
        );
    }

    #[test]
    fn a_hook_that_does_nothing_is_none() {
        for nothing in [
            json!({}),
            json!({"exec": {}}),
            json!({"exec": null}),
            json!({"sleep": {"seconds": 0}}),
            json!({"sleep": {"seconds": -1}}),
        ] {
            assert_eq!(of(nothing.clone()), Ok(None), "{nothing}");
        }
    }

    #[test]
    fn a_hook_that_cannot_be_run_says_why() {
        for broken in [
            json!("x"),
            json!([]),
            json!({"httpGet": {"port": "db"}}),
            json!({"httpGet": {"port": 70000}}),
            json!({"tcpSocket": {}}),
        ] {
            assert!(of(broken.clone()).is_err(), "{broken}");
        }
        for needs_address in [json!({"httpGet": {"port": 1}}), json!({"tcpSocket": {"port": 1}})] {
            let without = hook(&needs_address, &Value::Null, None);
            assert_eq!(without, Err("its pod has no address".to_owned()));
        }
    }
}
