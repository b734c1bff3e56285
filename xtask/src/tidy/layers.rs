//! Who may depend on whom, and who may write to the API.

/// Crate folder, and the workspace crates it may depend on.
const EDGES: &[(&str, &[&str])] = &[
    ("lib/go-compat", &[]),
    ("lib/cri", &[]),
    ("lib/image-credentials", &["go-compat"]),
    ("lib/kube-queue", &[]),
    ("lib/kube-cache", &[]),
    ("lib/kube-schema", LIBS),
    ("api", LIBS),
    (
        "views",
        &[
            "go-compat",
            "kube-cache",
            "kube-queue",
            "kube-schema",
            "kruise-api",
        ],
    ),
    ("plan-kit", PLAN),
    ("plan-workloads", PLAN),
    ("plan-sidecars", PLAN),
    ("plan-nodes", PLAN),
    ("plan-distribution", PLAN),
    ("plan-podstate", PLAN),
    ("plan-united", PLAN),
    ("plan-spread", PLAN),
    ("admission", PLAN),
    // Of plans it has the switch of injected bugs only.
    ("agent-core", PLAN),
    ("agent", SHELL_OF_NODES),
    ("agent-sim", &["cri", "kruise-agent", "kruise-sim"]),
    ("sim", LIBS),
    ("program", PROGRAM),
    ("frame", FRAME),
    ("kinds", KINDS),
    ("manager", MANAGER),
    ("install", INSTALL),
    ("swap", SWAP),
    ("cli", CLI),
    ("tour", &[]),
];
const LIBS: &[&str] = &["go-compat", "kube-cache", "kube-queue", "kube-schema"];
/// Libraries that do I/O, for the agent of a node: nothing that is pure depends on them.
const OF_NODES: &[&str] = &["cri", "image-credentials"];
/// The agent's shell: it needs nothing of plans but the names of resources and the shape of events.
const SHELL_OF_NODES: &[&str] = &[
    "go-compat",
    "kube-cache",
    "cri",
    "image-credentials",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
    "kruise-agent-core",
    "kruise-runtime",
    "kruise-program",
    "kruise-server",
];
/// What every executable has.
const PROGRAM: &[&str] = &["go-compat", "kruise-runtime"];
const PLAN: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kube-queue",
    "kube-schema",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
];

/// What controllers are made of.
const FRAME: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kube-queue",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
    "kruise-admission",
    "kruise-runtime",
    "kruise-program",
    "kruise-server",
];
const KINDS: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
    "kruise-plan-distribution",
    "kruise-plan-nodes",
    "kruise-plan-podstate",
    "kruise-plan-sidecars",
    "kruise-plan-spread",
    "kruise-plan-united",
    "kruise-plan-workloads",
    "kruise-admission",
    "kruise-runtime",
    "kruise-server",
    "kruise-frame",
];
const MANAGER: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kube-schema",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
    "kruise-admission",
    "kruise-runtime",
    "kruise-server",
    "kruise-frame",
    "kruise-kinds",
];
const INSTALL: &[&str] = &[
    "go-compat",
    "kube-schema",
    "kruise-api",
    "kruise-plan-kit",
    "kruise-admission",
    "kruise-runtime",
    "kruise-frame",
    "kruise-kinds",
];
const SWAP: &[&str] = &[
    "go-compat",
    "kube-cache",
    "kruise-api",
    "kruise-plan-kit",
    "kruise-admission",
    "kruise-runtime",
    "kruise-frame",
    "kruise-kinds",
    "kruise-manager",
    "kruise-install",
];

/// The commands of people.
const CLI: &[&str] = &[
    "kube-schema",
    "kruise-api",
    "kruise-views",
    "kruise-plan-kit",
    "kruise-plan-workloads",
    "kruise-admission",
    "kruise-runtime",
    "kruise-program",
    "kruise-frame",
    "kruise-kinds",
    "kruise-install",
    "kruise-swap",
];

/// Crates whose folders are one controller each; a controller knows nothing of its neighbours.
const CONTROLLERS: &[&str] = &[
    "plan-workloads/src/",
    "plan-nodes/src/",
    "plan-distribution/src/",
    "plan-podstate/src/",
    "plan-spread/src/",
];
/// Crates that hold a client.
const SHELLS: &[&str] = &[
    "runtime/src/",
    "server/src/",
    "agent/src/",
    "frame/src/",
    "kinds/src/",
    "manager/src/",
    "install/src/",
    "swap/src/",
    "playground/src/",
    "cli/src/",
    "kruise/src/",
];
/// The only files that call the client's write verbs.
const WRITERS: &[&str] = &[
    // Defines them.
    "runtime/src/client/mod.rs",
    // Writes of plans.
    "runtime/src/executor/driver.rs",
    "runtime/src/worker/status/mod.rs",
    "runtime/src/lease/driver.rs",
    "kinds/src/charges/writer.rs",
    "runtime/src/events/sink.rs",
    // What the agent of a node reports: the status of its NodeImage, and of pods.
    "agent/src/effects/api.rs",
    // Certificates, and the configurations that name their CA.
    "manager/src/registrar.rs",
    // Stored objects, written as they are.
    "swap/src/migrate/cluster.rs",
    "swap/src/migrate/paced.rs",
    "swap/src/migrate/rewrite.rs",
    // Requests to restart containers, for the user who asks for them.
    "cli/src/restart/requests.rs",
    // What is being deleted when the manager is removed, and the conversion of definitions.
    "install/src/uninstall.rs",
    // The user of a playground, as its tour plays one.
    "playground/src/stage.rs",
];
const WRITE_VERBS: &[&str] = &["create", "replace", "patch", "delete"];

/// Dependencies of a manifest that are not in a layer below.
pub(super) fn edges(path: &str, text: &str) -> Vec<String> {
    let folder = path.trim_end_matches("/Cargo.toml");
    let Some((_, allowed)) = EDGES.iter().find(|(of, _)| *of == folder) else {
        return Vec::new();
    };
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with('[') {
            section = line;
        }
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = LIBS.contains(&name) || OF_NODES.contains(&name) || name.starts_with("kruise-");
        if section == "[dependencies]" && is_ours && !allowed.contains(&name) {
            found.push(format!("{path}: {name} is not in a layer below"));
        }
    }
    found
}

/// Controllers named in the folder of another one. `folders` are the controllers' names.
pub(super) fn siblings(path: &str, text: &str, folders: &[String]) -> Vec<String> {
    let Some(own) = CONTROLLERS
        .iter()
        .find_map(|of| path.strip_prefix(of))
        .and_then(|rest| rest.split_once('/'))
    else {
        return Vec::new();
    };
    let others = folders.iter().filter(|name| *name != own.0);
    let named = others.filter(|name| text.contains(&format!("crate::{name}::")));
    named
        .map(|name| format!("{path}: {name} is another controller"))
        .collect()
}

/// The controllers among `paths`.
pub(super) fn controllers<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let folders = paths.filter_map(|path| {
        let rest = CONTROLLERS.iter().find_map(|of| path.strip_prefix(of))?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    let mut folders: Vec<String> = folders.collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Lines that write to the API where nobody should.
pub(super) fn writers(path: &str, text: &str) -> Vec<String> {
    let is_shell = SHELLS.iter().any(|shell| path.starts_with(shell));
    if !is_shell || WRITERS.contains(&path) || path.ends_with("tests.rs") || path.contains("/tests/") {
        return Vec::new();
    }
    let writes = |line: &str| {
        WRITE_VERBS
            .iter()
            .any(|verb| line.contains(&format!(".{verb}(&")) || line.contains(&format!(".{verb}::<")))
    };
    let lines = text.lines().enumerate().filter(|(_, line)| writes(line));
    lines
        .map(|(index, _)| format!("{path}:{}: only the writers write to the API", index + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_may_not_depend_on_a_layer_above() {
        let manifest = "[dependencies]\nkruise-runtime.workspace = true\ngo-compat.workspace = true\n";
        assert_eq!(
            edges("api/Cargo.toml", manifest),
            ["api/Cargo.toml: kruise-runtime is not in a layer below"]
        );
        let manifest = "[dependencies]\ncri.workspace = true\n";
        assert_eq!(edges("sim/Cargo.toml", manifest).len(), 1);
    }

    #[test]
    fn a_controller_may_not_name_its_neighbour() {
        let paths = [
            "plan-workloads/src/a/mod.rs",
            "plan-workloads/src/b/x.rs",
            "plan-workloads/src/lib.rs",
        ];
        let folders = controllers(paths.into_iter());
        assert_eq!(folders, ["a", "b"]);
        assert_eq!(siblings(paths[0], "use crate::b::plan;", &folders).len(), 1);
        assert!(siblings(paths[0], "use crate::a::plan;", &folders).is_empty());
        assert!(siblings(paths[2], "use crate::a::plan;", &folders).is_empty());
    }

    #[test]
    fn only_writers_write() {
        let line = "self.client.patch::<IgnoredAny>(&path, MERGE, &patch)";
        assert_eq!(writers("cli/src/explain/mod.rs", line).len(), 1);
        assert!(writers("runtime/src/events/sink.rs", line).is_empty());
        assert!(writers("cli/src/explain/mod.rs", "name.replace('a', \"b\")").is_empty());
    }
}
