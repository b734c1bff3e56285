//! Defaults of pod templates and volume claims.
//!
//! The rules are Kubernetes' own for a template (a pod gets more, at creation), with one difference that workloads of
//! this family always had: a regular container without `imagePullPolicy` gets `Always`, whatever its tag. A defaulted
//! template is what revisions hash, so a rule added or dropped here rolls pods.
//!
//! Defaulting is idempotent and never touches a member that holds something, except that quantities finer than a
//! thousandth are rounded up.

mod container;
mod fill;
mod volume;

use serde_json::Value;

use self::container::Role;
use self::fill::{each, fill, member, object_or_insert, round_quantities};

/// Whether containers of a template with `hostNetwork` get a `hostPort` equal to each `containerPort`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPorts {
    /// Ports stay as written; the API server fills them in when the pod is created.
    #[default]
    Leave,
    /// Gate `DefaultHostNetworkHostPortsInPodTemplates`.
    Copy,
}

/// Which of the optional defaults apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Host ports under `hostNetwork`.
    pub host_ports: HostPorts,
}

/// Fills in the defaults of a pod template. Anything that is not of the expected JSON type is left for validation.
pub fn pod_template(template: &mut Value, options: Options) {
    if !template.is_object() {
        return;
    }
    let Some(spec) = object_or_insert(template, "spec") else {
        return;
    };
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "restartPolicy", "Always");
    fill(spec, "schedulerName", "default-scheduler");
    fill::fill_missing(spec, "terminationGracePeriodSeconds", 30);
    object_or_insert(spec, "securityContext");
    each(spec, "volumes", volume::volume);
    each(spec, "containers", |one| container::container(one, Role::Regular));
    each(spec, "initContainers", |c| container::container(c, Role::Other));
    each(spec, "ephemeralContainers", |c| {
        container::container(c, Role::Other);
    });
    round_quantities(spec, "overhead");
    if let Some(resources) = member(spec, "resources") {
        round_quantities(resources, "limits");
        round_quantities(resources, "requests");
    }
    if options.host_ports == HostPorts::Copy && spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        each(spec, "containers", container::host_ports);
        each(spec, "initContainers", container::host_ports);
    }
}

/// Fills in the defaults of a container as clients do without startup probes and gRPC: stored hashes of such
/// containers do not change when clients learn more.
pub fn older_container(one: &mut Value) {
    container::older(one);
}

/// Fills in the defaults of a volume. One whose source is not known is not taken for one without a source.
pub fn volume(one: &mut Value) {
    volume::volume(one);
}

/// Fills in the defaults of a volume claim template: it counts as pending. `volumeMode` is left to the API server:
/// claim templates are hashed, and stored ones lack it.
pub fn claim(claim: &mut Value) {
    if !claim.is_object() {
        return;
    }
    if let Some(status) = object_or_insert(claim, "status") {
        fill(status, "phase", "Pending");
        round_quantities(status, "capacity");
        round_quantities(status, "allocatedResources");
    }
    if let Some(resources) = member(claim, "spec").and_then(|spec| member(spec, "resources")) {
        round_quantities(resources, "limits");
        round_quantities(resources, "requests");
    }
}

#[cfg(test)]
mod tests;
