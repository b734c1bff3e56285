//! The flags of a manager's process, and how controllers declare theirs. Names and defaults are upstream's, so that
//! charts and overrides keep working.

use go_compat::flags::{Flag, Kind};

use crate::{leader::LEASE, profile::FLAG};

/// Limits of the values of a flag. The manager does not start with another value.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Name of the flag, whose values are integers.
    pub flag: &'static str,
    /// Least value.
    pub least: i64,
    /// Largest value.
    pub most: i64,
}

/// Flags of the process.
pub const OWN: &[Flag] = &[
    flag(
        FLAG,
        Kind::String,
        "",
        "plural names of kinds, separated by commas: act on these and serve these, and ignore all others",
    ),
    flag(
        "vmodule",
        Kind::String,
        "",
        "verbosity of single controllers, as NAME=6,OTHER*=4; the ConfigMap kruise-configuration changes it at run time",
    ),
    flag(
        "metrics-addr",
        Kind::String,
        ":8080",
        "address of the Prometheus endpoint; 0 turns it off",
    ),
    flag(
        "metrics-secure",
        Kind::Bool,
        "false",
        "serve metrics over TLS, to callers whose token may get the URL /metrics",
    ),
    flag(
        "health-probe-addr",
        Kind::String,
        ":8000",
        "address of /healthz and /readyz",
    ),
    flag(
        "enable-leader-election",
        Kind::Bool,
        "true",
        "let one of several managers run the controllers",
    ),
    flag(
        "leader-election-namespace",
        Kind::String,
        "kruise-system",
        "namespace of the lease; empty means the manager's own",
    ),
    flag("leader-election-id", Kind::String, LEASE, "name of the lease"),
    flag(
        "leader-election-resource-lock",
        Kind::String,
        "leases",
        "kind of the lock; only leases",
    ),
    flag(
        "leader-election-lease-duration",
        Kind::Duration,
        "15s",
        "others take over after this long without renewal",
    ),
    flag(
        "leader-election-renew-deadline",
        Kind::Duration,
        "10s",
        "the leader gives up after this long without success",
    ),
    flag(
        "leader-election-retry-period",
        Kind::Duration,
        "2s",
        "time between attempts",
    ),
    flag(
        "namespace",
        Kind::String,
        "",
        "watch this namespace only; empty means all",
    ),
    flag(
        "controller-cache-sync-timeout",
        Kind::Duration,
        "2m0s",
        "how long the first lists may take",
    ),
    flag(
        "shutdown-delay-duration",
        Kind::Duration,
        "5s",
        "how long webhooks are served after a signal, while /readyz fails; without effect with a WEBHOOK_HOST without a port",
    ),
    flag(
        "webhook-initialize-timeout",
        Kind::Duration,
        "60s",
        "how long certificates and configurations may take",
    ),
    flag(
        "webhook-client-ca",
        Kind::String,
        "",
        "file of the certificates that sign those of API servers; callers of webhooks without one are refused",
    ),
    flag(
        "kubeconfig",
        Kind::String,
        "",
        "path of a kubeconfig; empty means KUBECONFIG, then the cluster's own",
    ),
    flag(
        "rest-config-qps",
        Kind::Float,
        "0",
        "API requests a second of each component; 0 leaves the pace to the API server",
    ),
    flag(
        "rest-config-burst",
        Kind::Int,
        "0",
        "API requests at once, with rest-config-qps",
    ),
    flag(
        "allow-privileged",
        Kind::Bool,
        "true",
        "accept templates with privileged containers",
    ),
    flag(
        "feature-gates",
        Kind::String,
        "",
        "Name=true,Other=false; see the reference for all names",
    ),
    flag(
        "expectation-timeout",
        Kind::Duration,
        "5m0s",
        "a write not seen for this long is looked up in the API",
    ),
    flag(
        "rate-limiter-base-delay",
        Kind::Duration,
        "5ms",
        "first delay of a failing object",
    ),
    flag(
        "rate-limiter-max-delay",
        Kind::Duration,
        "16m40s",
        "largest delay of a failing object",
    ),
    flag(
        "rate-limiter-qps",
        Kind::Float,
        "10",
        "retries a second over all objects",
    ),
    flag(
        "rate-limiter-bucket-size",
        Kind::Int,
        "100",
        "retries at once over all objects",
    ),
    flag(
        "protection-log-path",
        Kind::String,
        "/log",
        "directory of protection.log, with a line for each refusal by a guard",
    ),
    flag("logging-format", Kind::String, "text", "text or json"),
    Flag {
        short: Some('v'),
        ..flag("v", Kind::Int, "0", "verbosity of the log")
    },
    flag(
        "dry-run",
        Kind::Bool,
        "false",
        "print what would be done, and do nothing",
    ),
];

/// Accepted and ignored, because installations pass them.
pub const IGNORED: &[Flag] = &[
    flag("enable-pprof", Kind::Bool, "true", "accepted and ignored"),
    flag("pprof-addr", Kind::String, ":8090", "accepted and ignored"),
    flag(
        "sync-period",
        Kind::String,
        "",
        "accepted and ignored: nothing here depends on a resync",
    ),
    flag("disable-no-deepcopy", Kind::Bool, "false", "accepted and ignored"),
];

/// A flag without a short form.
pub const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag {
        name,
        short: None,
        default,
        kind,
        help,
    }
}
