//! The flags of the agent: upstream's names and defaults, so that charts and overrides keep working.

use std::sync::LazyLock;

use go_compat::flags::{Flag, Kind, LOGGING};

/// All flags: the agent's own, and those that are accepted and ignored.
pub static FLAGS: LazyLock<Vec<Flag>> = LazyLock::new(|| OWN.iter().chain(LOGGING).copied().collect());

const OWN: &[Flag] = &[
    flag(
        "addr",
        Kind::String,
        ":10221",
        "address of /metrics and /healthz; 0 turns it off",
    ),
    flag(
        "socket-file",
        Kind::String,
        "",
        "socket of the container runtime: a path below /hostvarrun, or unix:///absolute/path; empty looks for one",
    ),
    flag(
        "plugin-config-file",
        Kind::String,
        "/kruise/CredentialProviderPlugin.yaml",
        "the kubelet's CredentialProviderConfig; without the file no plugin is used",
    ),
    flag(
        "plugin-bin-dir",
        Kind::String,
        "/kruise/plugins",
        "folder with the programs of credential provider plugins",
    ),
    flag(
        "max-workers-for-pull-image",
        Kind::Int,
        "-1",
        "most images that are pulled at a time; no limit below 1",
    ),
    flag(
        "min-free-disk-percent",
        Kind::Int,
        "10",
        "no image is pulled while less of the disk with the images is free, unless that is 20 GiB; 0 pulls always",
    ),
    flag(
        "rest-config-qps",
        Kind::Float,
        "0",
        "API requests a second of each component; 0 means 20",
    ),
    flag(
        "rest-config-burst",
        Kind::Int,
        "0",
        "API requests at once of each component; 0 means 30",
    ),
    flag(
        "kubeconfig",
        Kind::String,
        "",
        "path of a kubeconfig; empty means KUBECONFIG, then the cluster's own",
    ),
    flag(
        "feature-gates",
        Kind::String,
        "",
        "Name=true,Other=false; see the reference for all names",
    ),
    flag("logging-format", Kind::String, "text", "text or json"),
    Flag {
        short: Some('v'),
        ..flag("v", Kind::Int, "0", "verbosity of the log")
    },
    flag("vmodule", Kind::String, "", "accepted and ignored"),
    flag("enable-pprof", Kind::Bool, "true", "accepted and ignored"),
    flag("pprof-addr", Kind::String, ":10222", "accepted and ignored"),
];

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        default,
        kind,
        help,
    }
}
