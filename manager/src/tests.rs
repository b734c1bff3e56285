//! The configuration that flags and environment give.

use go_compat::flags::FlagSet;
use kruise_frame::config::Config;

use crate::FLAGS;

fn config(line: &[&str], env: &[(&str, &str)]) -> Result<Config, String> {
    let values = FlagSet::new(&FLAGS).parse(line.iter().copied()).unwrap();
    let variable = |name: &str| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    Config::new(&values, kruise_kinds::limits(), kruise_kinds::kinds(), &variable)
        .map_err(|error| format!("{error:#}"))
}

#[test]
fn the_defaults_are_upstreams() {
    let config = config(&[], &[]).unwrap();
    let lease = config.lease.clone().unwrap();
    assert_eq!(
        (lease.name.as_str(), lease.namespace.as_str()),
        ("kruise-manager", "kruise-system")
    );
    assert_eq!(
        [lease.duration, lease.renew_deadline, lease.retry_period].map(|d| d.as_secs()),
        [15, 10, 2]
    );
    assert_eq!(config.metrics.unwrap().to_string(), "[::]:8080");
    assert_eq!(
        (config.webhook.port, config.webhook.writer.as_str()),
        (9876, "secret")
    );
    assert_eq!(config.workers("cloneset-workers"), 3);
    assert_eq!(config.retries, kube_queue::Config::CLIENT_GO);
}

#[test]
fn a_flag_beyond_its_limits_is_refused_with_them() {
    let ttl = |value: &str| {
        let line = format!("--default-ttlseconds-for-always-nodeimage={value}");
        config(&[&line], &[]).map(drop)
    };
    assert_eq!([ttl("0"), ttl("300"), ttl("2678400")], [Ok(()), Ok(()), Ok(())]);
    for value in ["-1", "2678401"] {
        let error = ttl(value).unwrap_err();
        assert_eq!(
            error,
            format!("--default-ttlseconds-for-always-nodeimage is {value}; it may be 0 to 2678400")
        );
    }
}

#[test]
fn the_environment_names_the_namespace_of_pull_secrets() {
    let of = |env: &[(&str, &str)]| config(&[], env).unwrap().agent_namespace;
    assert_eq!(of(&[]), "kruise-daemon-config");
    assert_eq!(of(&[("KRUISE_DAEMON_CONFIG_NS", "")]), "kruise-daemon-config");
    assert_eq!(of(&[("KRUISE_DAEMON_CONFIG_NS", "pulls")]), "pulls");
}

#[test]
fn an_empty_lease_namespace_is_the_managers_own() {
    let line = ["--leader-election-namespace="];
    let config = config(&line, &[("POD_NAMESPACE", "own")]).unwrap();
    assert_eq!(config.lease.unwrap().namespace, "own");
}

#[test]
fn a_webhook_host_keeps_certificates_in_files() {
    let config = config(&[], &[("WEBHOOK_HOST", "127.0.0.1")]).unwrap();
    assert_eq!(config.webhook.writer, "fs");
}

#[test]
fn a_webhook_host_may_have_the_port_of_a_balancer() {
    for (text, host, port) in [
        ("10.0.0.1", "10.0.0.1", 9876),
        ("hooks.example.com:443", "hooks.example.com", 443),
        ("fd00::1", "fd00::1", 9876),
        ("[fd00::1]", "fd00::1", 9876),
        ("[fd00::1]:443", "fd00::1", 443),
    ] {
        let config = config(&[], &[("WEBHOOK_HOST", text)]).unwrap();
        assert_eq!(config.webhook.address, Some((host.to_owned(), port)), "{text}");
        assert_eq!(config.webhook.port, 9876);
    }
}

#[test]
fn webhooks_outlast_readiness_where_clients_reach_them_through_a_service() {
    let delay = |line: &[&str], host| config(line, &[("WEBHOOK_HOST", host)]).unwrap().shutdown_delay;
    let line = ["--shutdown-delay-duration=1m"];
    assert_eq!(
        [delay(&[], ""), delay(&line, "")].map(|delay| delay.as_secs()),
        [5, 60]
    );
    assert!(delay(&line, "127.0.0.1").is_zero());
    assert_eq!(delay(&line, "127.0.0.1:443").as_secs(), 60);
}

#[test]
fn mistakes_name_the_flag_or_variable() {
    for (line, env, wanted) in [
        (
            vec!["--feature-gates=Nope=true"],
            vec![],
            "unrecognized feature gate: Nope",
        ),
        (vec!["--metrics-addr=nonsense"], vec![], "--metrics-addr"),
        (
            vec!["--leader-election-lease-duration=5s"],
            vec![],
            "--leader-election-renew-deadline",
        ),
        (vec!["--expectation-timeout=0s"], vec![], "--expectation-timeout"),
        (
            vec!["--shutdown-delay-duration=-1s"],
            vec![],
            "--shutdown-delay-duration",
        ),
        (vec![], vec![("WEBHOOK_PORT", "http")], "WEBHOOK_PORT"),
        (vec![], vec![("WEBHOOK_HOST", "a:http")], "WEBHOOK_HOST"),
        (
            vec![],
            vec![("WEBHOOK_CERT_WRITER", "tape")],
            "WEBHOOK_CERT_WRITER",
        ),
    ] {
        let error = config(&line, &env).unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
}
