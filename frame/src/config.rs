//! Flags and environment → configuration. Every value is checked before anything starts.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use go_compat::{flags::Values, schedule::local_zone};
use jiff::{SignedDuration, tz::TimeZone};
use kruise_api::{
    definition::Kind,
    names::{AGENT_NAMESPACE, AGENT_NAMESPACE_VARIABLE},
};

use crate::{
    flags::Limit,
    gates::Gates,
    profile::{FLAG, Profile},
};

/// Configuration of the manager.
#[derive(Clone, Debug)]
pub struct Config {
    /// Feature gates after their dependencies.
    pub gates: Gates,
    /// The kinds that it acts on and serves.
    pub profile: Profile,
    /// Path of the kubeconfig, if the flag was given.
    pub kubeconfig: Option<PathBuf>,
    /// Requests a second, and burst, if the flag was given.
    pub pace: Option<(f32, u32)>,
    /// Watch this namespace only.
    pub namespace: Option<String>,
    /// Leader election; `None` to run without.
    pub lease: Option<LeaseConfig>,
    /// Address of the metrics.
    pub metrics: Option<SocketAddr>,
    /// Serve metrics over TLS, to callers that may read them.
    pub metrics_secure: bool,
    /// Address of the probes.
    pub health: Option<SocketAddr>,
    /// Webhooks.
    pub webhook: WebhookConfig,
    /// All flags, for the flags of controllers.
    flags: Values,
    /// After this time, an expectation is checked against the API server.
    pub expectation_timeout: Duration,
    /// Time limit of the first lists.
    pub cache_sync_timeout: Duration,
    /// How long webhooks are served after the manager is not ready any more, so that clients move to other managers
    /// first.
    pub shutdown_delay: Duration,
    /// Back-off of failed reconciles.
    pub retries: kube_queue::Config,
    /// Whether templates with privileged containers are accepted.
    pub allow_privileged: bool,
    /// Namespace of the Secrets that node agents may read.
    pub agent_namespace: String,
    /// Directory of the protection log.
    pub protection_log: PathBuf,
    /// Log plans and write nothing.
    pub dry_run: bool,
    /// The time zone of schedules that name none.
    pub time_zone: TimeZone,
}

/// The leader lease.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Others take over after this long without renewal.
    pub duration: Duration,
    /// The leader gives up after this long without success.
    pub renew_deadline: Duration,
    /// Time between attempts.
    pub retry_period: Duration,
}

/// Where and how webhooks are served.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// Namespace of secret and service.
    pub namespace: String,
    /// Host and port that the API server calls directly, outside a cluster.
    pub address: Option<(String, u16)>,
    /// Port that is listened on.
    pub port: u16,
    /// Directory of the certificates.
    pub cert_dir: PathBuf,
    /// `fs` or `secret`.
    pub writer: String,
    /// Name of the secret.
    pub secret: String,
    /// Name of the service.
    pub service: String,
    /// Text of `CERTS_RENEW_BEFORE`.
    pub renew_before: String,
    /// File of the certificates that sign those of API servers; `None` if callers need none.
    pub client_ca: Option<PathBuf>,
    /// Time limit of the first reconcile of certificates and configurations.
    pub initialize_timeout: Duration,
}

impl Config {
    /// Reads flags and environment; `env` returns the value of a variable. Flags keep to these limits, and a
    /// profile is of these kinds.
    pub fn new(
        values: &Values,
        limits: impl IntoIterator<Item = &'static Limit>,
        kinds: &[&'static Kind],
        env: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let gates = Gates::parse(
            values.get_string("feature-gates"),
            &env("CUSTOM_RESOURCE_ENABLE").unwrap_or_default(),
        )
        .context("--feature-gates")?;
        let set = |name: &str| Some(values.get_string(name).to_owned()).filter(|text| !text.is_empty());
        for limit in limits {
            let (flag, value) = (limit.flag, values.get_int(limit.flag));
            if !(limit.least..=limit.most).contains(&value) {
                bail!("--{flag} is {value}; it may be {} to {}", limit.least, limit.most);
            }
        }
        let agent_namespace = env(AGENT_NAMESPACE_VARIABLE).filter(|name| !name.is_empty());
        let only = values.get_string(FLAG);
        let profile = Profile::parse(only, kinds).map_err(|error| anyhow!("--{FLAG}: {error}"))?;
        Ok(Self {
            gates,
            profile,
            kubeconfig: set("kubeconfig").map(PathBuf::from),
            pace: pace(values),
            namespace: set("namespace"),
            lease: lease(values, env)?,
            metrics: address("metrics-addr", values)?,
            metrics_secure: values.get_bool("metrics-secure"),
            health: address("health-probe-addr", values)?,
            webhook: webhook(values, env)?,
            flags: values.clone(),
            expectation_timeout: positive("expectation-timeout", values)?,
            cache_sync_timeout: positive("controller-cache-sync-timeout", values)?,
            shutdown_delay: shutdown_delay(values, env)?,
            retries: kube_queue::Config {
                backoff_base: positive("rate-limiter-base-delay", values)?,
                backoff_cap: positive("rate-limiter-max-delay", values)?,
                token_interval: Duration::from_secs_f64(
                    1.0 / values.get_float("rate-limiter-qps").max(0.001),
                ),
                burst: u32::try_from(values.get_int("rate-limiter-bucket-size")).unwrap_or(100),
                ..kube_queue::Config::CLIENT_GO
            },
            allow_privileged: values.get_bool("allow-privileged"),
            agent_namespace: agent_namespace.unwrap_or_else(|| AGENT_NAMESPACE.to_owned()),
            protection_log: values.get_string("protection-log-path").into(),
            dry_run: values.get_bool("dry-run"),
            time_zone: TimeZone::UTC,
        })
    }

    /// With the time zone of this process; `env` returns the value of a variable.
    #[must_use]
    pub fn in_local_time(self, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let read = |path: &str| std::fs::read(path).ok();
        Self {
            time_zone: local_zone(env("TZ").as_deref(), &read),
            ..self
        }
    }

    /// The value of a flag for the number of workers; at least one.
    pub fn workers(&self, flag: &'static str) -> usize {
        usize::try_from(self.flags.get_int(flag)).unwrap_or(0).max(1)
    }

    /// The verbosity of the log, and that of single controllers.
    pub fn verbosity(&self) -> (i64, &str) {
        (self.flags.get_int("v"), self.flags.get_string("vmodule"))
    }

    /// The value of an integer flag of a controller.
    pub fn int_flag(&self, flag: &'static str) -> i64 {
        self.flags.get_int(flag)
    }

    /// The value of a flag of a controller that is a length of time.
    pub fn duration_flag(&self, flag: &'static str) -> SignedDuration {
        self.flags.get_duration(flag)
    }

    /// The value of a boolean flag of a controller.
    pub fn bool_flag(&self, flag: &'static str) -> bool {
        self.flags.get_bool(flag)
    }
}

fn pace(values: &Values) -> Option<(f32, u32)> {
    let qps = values.get_float("rest-config-qps") as f32;
    let burst = u32::try_from(values.get_int("rest-config-burst")).unwrap_or(0);
    (qps > 0.0).then(|| (qps, if burst == 0 { qps.ceil() as u32 } else { burst }))
}

/// The file with the namespace of a pod's service account.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The namespace that the manager itself runs in.
fn own_namespace(env: &dyn Fn(&str) -> Option<String>, mounted: &Path) -> Option<String> {
    let named = env("POD_NAMESPACE").filter(|name| !name.is_empty());
    let mounted = || std::fs::read_to_string(mounted).map(|name| name.trim().to_owned());
    named.or_else(|| mounted().ok().filter(|name| !name.is_empty()))
}

fn lease(values: &Values, env: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<LeaseConfig>> {
    if !values.get_bool("enable-leader-election") {
        return Ok(None);
    }
    if values.get_string("leader-election-resource-lock") != "leases" {
        bail!("--leader-election-resource-lock: only leases are supported");
    }
    let namespace = match values.get_string("leader-election-namespace") {
        "" => own_namespace(env, Path::new(NAMESPACE_FILE)).context(
            "--leader-election-namespace is empty, which means the manager's own, but it runs in no pod; name one",
        )?,
        named => named.to_owned(),
    };
    let lease = LeaseConfig {
        namespace,
        name: values.get_string("leader-election-id").to_owned(),
        duration: positive("leader-election-lease-duration", values)?,
        renew_deadline: positive("leader-election-renew-deadline", values)?,
        retry_period: positive("leader-election-retry-period", values)?,
    };
    if lease.renew_deadline >= lease.duration {
        bail!("--leader-election-renew-deadline must be shorter than --leader-election-lease-duration");
    }
    if lease.retry_period >= lease.renew_deadline {
        bail!("--leader-election-retry-period must be shorter than --leader-election-renew-deadline");
    }
    Ok(Some(lease))
}

fn webhook(values: &Values, env: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<WebhookConfig> {
    let or = |name: &str, default: &str| {
        env(name)
            .filter(|text| !text.is_empty())
            .unwrap_or_else(|| default.to_owned())
    };
    let outside = outside(env)?;
    let writer = or(
        "WEBHOOK_CERT_WRITER",
        if outside.is_some() { "fs" } else { "secret" },
    );
    if !["fs", "secret"].contains(&writer.as_str()) {
        bail!("WEBHOOK_CERT_WRITER is {writer:?}; it may be fs or secret");
    }
    let port = or("WEBHOOK_PORT", "9876");
    let port = port
        .parse()
        .with_context(|| format!("WEBHOOK_PORT is {port:?}, which is no port"))?;
    Ok(WebhookConfig {
        namespace: or("POD_NAMESPACE", "kruise-system"),
        port,
        cert_dir: or("WEBHOOK_CERT_DIR", "/tmp/kruise-webhook-certs").into(),
        writer,
        secret: or("SECRET_NAME", "kruise-webhook-certs"),
        service: or("SERVICE_NAME", "kruise-webhook-service"),
        renew_before: env("CERTS_RENEW_BEFORE").unwrap_or_default(),
        initialize_timeout: positive("webhook-initialize-timeout", values)?,
        client_ca: Some(values.get_string("webhook-client-ca"))
            .filter(|file| !file.is_empty())
            .map(PathBuf::from),
        address: outside.map(|(host, of_balancer)| (host, of_balancer.unwrap_or(port))),
    })
}

/// The host in `WEBHOOK_HOST`, and the port of what distributes calls to several managers if that is given, too.
fn outside(env: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Option<(String, Option<u16>)>> {
    let Some(text) = env("WEBHOOK_HOST").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, Some(port)),
        Some((host, port)) if host.ends_with(']') => (host.trim_matches(['[', ']']), Some(port)),
        // An address of IPv6 alone has colons, too.
        _ => (text.trim_matches(['[', ']']), None),
    };
    let port = port.map(str::parse).transpose();
    let port = port.with_context(|| format!("WEBHOOK_HOST is {text:?}; write it as HOST or HOST:PORT"))?;
    Ok(Some((host.to_owned(), port)))
}

/// Where API servers call the address of one manager, waiting does not move them to another one.
fn shutdown_delay(values: &Values, env: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Duration> {
    let delay = values.get_duration("shutdown-delay-duration");
    let delay = Duration::try_from(delay)
        .ok()
        .with_context(|| format!("--shutdown-delay-duration must not be negative, is {delay}"))?;
    let is_alone = matches!(outside(env)?, Some((_, None)));
    Ok(if is_alone { Duration::ZERO } else { delay })
}

fn positive(name: &'static str, values: &Values) -> anyhow::Result<Duration> {
    let value = values.get_duration(name);
    Duration::try_from(value)
        .ok()
        .filter(|value| !value.is_zero())
        .with_context(|| format!("--{name} must be longer than 0s, is {value}"))
}

fn address(name: &'static str, values: &Values) -> anyhow::Result<Option<SocketAddr>> {
    let text = values.get_string(name);
    kruise_server::address::parse(text)
        .with_context(|| format!("--{name} is {text:?}; write it as :8080 or 127.0.0.1:8080"))
}

#[cfg(test)]
mod tests {
    use super::own_namespace;

    #[test]
    fn the_managers_own_namespace_is_the_pods_or_else_its_service_accounts() {
        let file = std::env::temp_dir().join(format!("kruise-namespace-{}", std::process::id()));
        let own = |pod: &str| own_namespace(&|_| Some(pod.to_owned()), &file);
        assert_eq!(own(""), None);
        std::fs::write(&file, "mounted\n").unwrap();
        let found = [own(""), own("pods")].map(Option::unwrap);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(found, ["mounted", "pods"]);
    }
}
