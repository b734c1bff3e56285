//! Flags and environment → settings. Every value is checked before anything starts.

use std::net::{AddrParseError, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use cri::{Endpoint, EndpointError, candidates};
use go_compat::flags::Values;
use kruise_agent_core::Config;
use kruise_server::address;
use tokio::net::TcpListener;

use crate::Error;

/// Where the node's `/run` is mounted.
const RUN: &str = "/hostvarrun";
/// Requests a second, and at once, of each component.
const QPS: f64 = 20.0;
const BURST: u32 = 30;

/// Settings of an agent.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the node.
    pub node: String,
    /// Path of the kubeconfig, if one was given.
    pub kubeconfig: Option<PathBuf>,
    /// Address of metrics and health, if they are served.
    pub addr: Option<SocketAddr>,
    /// Requests a second, and at once, of each component.
    pub pace: (f64, u32),
    /// Sockets that a container runtime may listen at, in the order in which they are tried.
    pub sockets: Vec<Endpoint>,
    /// The kubelet's `CredentialProviderConfig`. There may be none.
    pub plugin_config: PathBuf,
    /// Folder with the programs of plugins.
    pub plugin_folder: PathBuf,
    /// Home folder, for Docker's configuration files.
    pub home: Option<PathBuf>,
    /// Most images that are pulled at a time; `None` for no limit.
    pub max_pulls: Option<NonZeroU32>,
    /// Nothing is pulled while less of the disk is free; see [`Config::min_free_percent`].
    pub min_free_percent: u8,
    /// Are the node's pods watched, to report what their containers run with (gate `DaemonWatchingPod`)?
    pub watches_pods: bool,
    /// See [`Config::env_from_metadata`] (gate `InPlaceUpdateEnvFromMetadata`).
    pub env_from_metadata: bool,
    /// Are the probes of the NodePodProbe run (gate `PodProbeMarkerGate`)?
    pub runs_probes: bool,
}

/// A flag or variable that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// `NODE_NAME` is not set.
    #[error(
        "NODE_NAME is not set; the manifest of the agent sets it from the field spec.nodeName of its pod"
    )]
    NodeName,
    /// `--addr`.
    #[error("--addr is {text:?}; write it as :10221 or 127.0.0.1:10221 ({error})")]
    Address {
        /// Its value.
        text: String,
        /// Why.
        error: AddrParseError,
    },
    /// `--socket-file`.
    #[error("--socket-file: {0}")]
    Socket(#[from] EndpointError),
    /// `--min-free-disk-percent`.
    #[error("--min-free-disk-percent is {0}; it may be 0 to 100")]
    Percent(i64),
}

impl Settings {
    /// Reads flags and environment. `gate` says whether a feature gate is on, `env` returns the value of a variable.
    ///
    /// # Errors
    /// The first value that cannot be used.
    pub fn new(
        values: &Values,
        gate: &dyn Fn(&str) -> bool,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, SettingsError> {
        let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let addr = values.get_string("addr");
        let percent = values.get_int("min-free-disk-percent");
        let settings = Self {
            node: env("NODE_NAME")
                .filter(|name| !name.is_empty())
                .ok_or(SettingsError::NodeName)?,
            kubeconfig: set(values.get_string("kubeconfig")).map(PathBuf::from),
            addr: address::parse(addr).map_err(|error| SettingsError::Address {
                text: addr.to_owned(),
                error,
            })?,
            pace: pace(values),
            sockets: sockets(values.get_string("socket-file"))?,
            plugin_config: values.get_string("plugin-config-file").into(),
            plugin_folder: values.get_string("plugin-bin-dir").into(),
            home: env("HOME").as_deref().and_then(set).map(PathBuf::from),
            max_pulls: u32::try_from(values.get_int("max-workers-for-pull-image"))
                .ok()
                .and_then(NonZeroU32::new),
            min_free_percent: u8::try_from(percent)
                .ok()
                .filter(|percent| *percent <= 100)
                .ok_or(SettingsError::Percent(percent))?,
            watches_pods: false,
            env_from_metadata: false,
            runs_probes: false,
        };
        Ok(settings.gated(gate))
    }

    /// The same settings with what feature gates say. `gate` says whether one is on.
    #[must_use]
    pub fn gated(self, gate: &dyn Fn(&str) -> bool) -> Self {
        Self {
            watches_pods: gate("DaemonWatchingPod"),
            env_from_metadata: gate("InPlaceUpdateEnvFromMetadata"),
            runs_probes: gate("PodProbeMarkerGate"),
            ..self
        }
    }

    /// Listens for requests of metrics and health. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub fn listen(&self) -> Result<Option<TcpListener>, Error> {
        let bind = |address| {
            let bound = address::bind(address);
            bound.map_err(|error| Error::Listen { address, error })
        };
        self.addr.map(bind).transpose()
    }

    pub(crate) fn config(&self) -> Config {
        Config {
            max_pulls: self.max_pulls,
            min_free_percent: self.min_free_percent,
            env_from_metadata: self.env_from_metadata,
            ..Config::new(&self.node)
        }
    }
}

fn pace(values: &Values) -> (f64, u32) {
    let qps = values.get_float("rest-config-qps");
    let burst = u32::try_from(values.get_int("rest-config-burst")).unwrap_or_default();
    (
        if qps > 0.0 { qps } else { QPS },
        if burst > 0 { burst } else { BURST },
    )
}

/// The named socket only, or all where a runtime may be.
fn sockets(named: &str) -> Result<Vec<Endpoint>, EndpointError> {
    let run = Path::new(RUN);
    if named.is_empty() {
        return Ok(candidates(run));
    }
    Endpoint::parse(named, run).map(|endpoint| vec![endpoint])
}

#[cfg(test)]
mod tests {
    use go_compat::flags::FlagSet;

    use super::*;
    use crate::FLAGS;

    fn read(line: &[&str], env: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        let values = FlagSet::new(&FLAGS).parse(line.iter().copied()).unwrap();
        let variable = |name: &str| {
            let found = env.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::new(&values, &|gate| gate == "DaemonWatchingPod", &variable)
    }

    fn on_node(line: &[&str]) -> Result<Settings, SettingsError> {
        read(line, &[("NODE_NAME", "n1"), ("HOME", "/root")])
    }

    #[test]
    fn s7_2_the_defaults_are_upstreams() {
        let settings = on_node(&[]).unwrap();
        assert_eq!((settings.node.as_str(), settings.max_pulls), ("n1", None));
        assert_eq!(settings.addr.unwrap().to_string(), "[::]:10221");
        assert_eq!(settings.pace, (20.0, 30));
        assert_eq!(
            (settings.plugin_config.as_path(), settings.plugin_folder.as_path()),
            (
                Path::new("/kruise/CredentialProviderPlugin.yaml"),
                Path::new("/kruise/plugins")
            )
        );
        assert_eq!(settings.home.as_deref(), Some(Path::new("/root")));
        assert!(settings.watches_pods && !settings.env_from_metadata && !settings.runs_probes);
        assert_eq!(settings.config().min_free_percent, 10);
    }

    #[test]
    fn s7_1_without_the_name_of_its_node_it_does_not_start() {
        for env in [&[][..], &[("NODE_NAME", "")]] {
            let error = read(&[], env).unwrap_err();
            assert!(error.to_string().starts_with("NODE_NAME is not set"), "{error}");
        }
    }

    #[test]
    fn s7_3_a_named_socket_is_the_only_one() {
        let paths = |line: &[&str]| {
            let sockets = on_node(line).unwrap().sockets;
            sockets.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            paths(&["--socket-file=crio/crio.sock"]),
            ["unix:///hostvarrun/crio/crio.sock"]
        );
        assert_eq!(
            paths(&["--socket-file", "unix:///run/a.sock"]),
            ["unix:///run/a.sock"]
        );
        let all = paths(&[]);
        assert_eq!(all.first().unwrap(), "unix:///hostvarrun/containerd.sock");
        assert!(
            all.iter().any(|path| path.contains("k3s")) && all.iter().any(|path| path.contains("microk8s"))
        );
    }

    #[test]
    fn flags_of_charts_and_of_klog_are_taken() {
        let line = [
            "--addr=localhost:10221",
            "--max-workers-for-pull-image=2",
            "--rest-config-qps=5",
            "--rest-config-burst=10",
            "--min-free-disk-percent=0",
            "--logtostderr=true",
            "-v=4",
            "--enable-pprof=true",
            "--pprof-addr=localhost:10222",
            "--feature-gates=",
        ];
        let settings = on_node(&line).unwrap();
        assert_eq!(settings.max_pulls.map(NonZeroU32::get), Some(2));
        assert_eq!(settings.pace, (5.0, 10));
        assert_eq!(settings.addr.unwrap().to_string(), "127.0.0.1:10221");
        assert_eq!(settings.min_free_percent, 0);
        assert_eq!(on_node(&["--addr=0"]).unwrap().addr, None);
    }

    #[test]
    fn mistakes_name_the_flag() {
        for (flag, name) in [
            ("--addr=nonsense", "--addr is \"nonsense\""),
            ("--socket-file=npipe://a", "--socket-file: "),
            ("--min-free-disk-percent=101", "--min-free-disk-percent is 101"),
            ("--min-free-disk-percent=-1", "--min-free-disk-percent is -1"),
        ] {
            let error = on_node(&[flag]).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
