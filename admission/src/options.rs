//! Feature gates and flags that admission heeds.

/// What is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Fill in defaults of pod templates; off with gate `TemplateNoDefaults`.
    pub template_defaults: bool,
    /// Copy container ports to host ports under `hostNetwork`: gate `DefaultHostNetworkHostPortsInPodTemplates`.
    pub host_ports: bool,
    /// Templates may have privileged containers: flag `--allow-privileged`.
    pub allow_privileged: bool,
    /// Heed the deletion protection label: gate `ResourcesDeletionProtection`.
    pub deletion_protection: bool,
    /// Every pod gets the readiness gate, whoever made it: gate `KruisePodReadinessGate`.
    pub readiness_gate_for_all: bool,
    /// Injected containers are sorted by name: gate `EnableSortSidecarContainerByName`.
    pub sort_sidecars: bool,
}

impl Default for Options {
    /// The defaults of gates and flags.
    fn default() -> Self {
        Self {
            template_defaults: true,
            host_ports: false,
            allow_privileged: true,
            deletion_protection: false,
            readiness_gate_for_all: false,
            sort_sidecars: false,
        }
    }
}
