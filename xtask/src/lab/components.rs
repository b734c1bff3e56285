//! Command lines of the control plane's processes.

use std::path::Path;

use super::address::Address;
use super::pki::Pki;
use super::ports::Ports;

/// The API server's audit log, in the cluster's folder.
pub(super) const AUDIT_LOG: &str = "audit.log";

/// Are requests logged?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audit {
    On,
    Off,
}

/// What the command lines are made of.
#[derive(Debug)]
pub(crate) struct Components<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) ports: Ports,
    pub(crate) api: &'a Address,
    /// Whether pods have service accounts and webhooks are called by their Service: a manager runs as a pod.
    pub(crate) serves_pods: bool,
    pub(crate) pki: &'a Pki,
    pub(crate) audit: Audit,
    /// Are objects put into etcd, and read there? Then all are stored as JSON. Claims are not bound, because their
    /// volumes are not there, and nodes without kubelets stay ready.
    pub(crate) loaded: bool,
}

impl Components<'_> {
    pub(crate) fn etcd(&self) -> Vec<String> {
        let client = format!("http://127.0.0.1:{}", self.ports.etcd());
        let peer = format!("http://127.0.0.1:{}", self.ports.etcd_peer());
        vec![
            format!("--data-dir={}", self.dir.join("etcd").display()),
            "--unsafe-no-fsync".into(),
            "--log-level=error".into(),
            "--quota-backend-bytes=8589934592".into(),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
        ]
    }

    pub(crate) fn apiserver(&self) -> Vec<String> {
        let pki = |file: &str| self.pki.path(file).display().to_string();
        let mut arguments = vec![
            "kube-apiserver".into(),
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd()),
            format!("--secure-port={}", self.api.port),
            format!("--bind-address={}", self.api.host),
            format!("--advertise-address={}", self.api.host),
            "--endpoint-reconciler-type=none".into(),
            format!("--tls-cert-file={}", pki("apiserver.crt")),
            format!("--tls-private-key-file={}", pki("apiserver.key")),
            format!("--client-ca-file={}", pki("ca.crt")),
            format!("--service-account-key-file={}", pki("sa.pub")),
            format!("--service-account-signing-key-file={}", pki("sa.key")),
            "--service-account-issuer=https://kubernetes.default.svc".into(),
            format!("--service-cluster-ip-range={}", self.api.services),
            "--authorization-mode=RBAC,Node".into(),
            "--allow-privileged".into(),
            // Logs and commands are requested from real nodes by their address.
            format!("--kubelet-client-certificate={}", pki("admin.crt")),
            format!("--kubelet-client-key={}", pki("admin.key")),
            "--kubelet-preferred-address-types=InternalIP".into(),
            // The manager's own pace is measured, not the server's throttling.
            "--max-requests-inflight=3000".into(),
            "--max-mutating-requests-inflight=1000".into(),
            "--enable-priority-and-fairness=false".into(),
            "--watch-cache-sizes=pods#20000".into(),
        ];
        arguments.push(if self.serves_pods {
            // There is no kube-proxy: the API server calls the endpoints of a Service.
            "--enable-aggregator-routing=true".into()
        } else {
            // Simulated pods have no service account: the controller that makes tokens is not what is tested.
            "--disable-admission-plugins=ServiceAccount".into()
        });
        if self.loaded {
            arguments.push("--storage-media-type=application/json".into());
        }
        if self.audit == Audit::On {
            arguments.push(format!(
                "--audit-policy-file={}",
                self.dir.join("audit-policy.yaml").display()
            ));
            arguments.push(format!("--audit-log-path={}", self.dir.join(AUDIT_LOG).display()));
            // In MiB. Whoever counts requests remembers a position in the log: it must not be rotated away.
            arguments.push("--audit-log-maxsize=1000000".into());
        }
        arguments
    }

    pub(crate) fn controller_manager(&self, kubeconfig: &Path) -> Vec<String> {
        let controllers = if self.loaded {
            "*,-persistentvolume-binder-controller,-node-lifecycle-controller,-taint-eviction-controller,-ttl-controller"
        } else {
            "*"
        };
        vec![
            "kube-controller-manager".into(),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!(
                "--service-account-private-key-file={}",
                self.pki.path("sa.key").display()
            ),
            format!("--root-ca-file={}", self.pki.path("ca.crt").display()),
            "--use-service-account-credentials=false".into(),
            "--kube-api-qps=2000".into(),
            "--kube-api-burst=4000".into(),
            "--leader-elect=false".into(),
            "--authorization-always-allow-paths=*".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.controller_manager()),
            "--node-monitor-grace-period=300s".into(),
            // Binds claims of a class with provisioner kubernetes.io/host-path.
            "--enable-hostpath-provisioner".into(),
            format!("--controllers={controllers}"),
        ]
    }

    pub(crate) fn scheduler(&self, kubeconfig: &Path) -> Vec<String> {
        vec![
            "kube-scheduler".into(),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--leader-elect=false".into(),
            "--kube-api-qps=2000".into(),
            "--kube-api-burst=4000".into(),
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={}", self.ports.scheduler()),
        ]
    }

    pub(crate) fn kwok(&self, kubeconfig: &Path) -> Vec<String> {
        let port = self.ports.kwok();
        vec![
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--config={}", self.dir.join("kwok-stages.yaml").display()),
            "--manage-all-nodes=false".into(),
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".into(),
            "--cidr=10.1.0.0/16".into(),
            "--node-ip=127.0.0.1".into(),
            format!("--server-address=127.0.0.1:{port}"),
            format!("--node-port={port}"),
            "--node-lease-duration-seconds=200".into(),
        ]
    }
}
