//! Oracles that fail where requests are altered on their way.

/// Seeds of subjects, and the oracles that fail there when the requests are altered that managers, agents and
/// commands send. `kruise-dst alter` finds them.
pub const ALTERED: &[(&str, &[&str])] = &[
    (
        "advancedcronjob/3",
        &[
            "jobs name their activation",
            "no activation before one that had a job",
        ],
    ),
    ("advancedcronjob/5", &["the history is kept"]),
    ("advancedcronjob/6", &["jobs that run stay"]),
    ("broadcastjob/1", &["nodes that may run a pod of a job"]),
    ("broadcastjob/5", &["a paused job creates nothing"]),
    (
        "broadcastjob/14",
        &[
            "a pod of a job has its form",
            "a reason for each deletion of a job",
        ],
    ),
    ("containerrecreaterequest/2", &["a request ends for a reason"]),
    (
        "containerrecreaterequest/5",
        &[
            "a request ends when its containers are dealt with",
            "a request is written as often as it needs",
            "an end is final",
        ],
    ),
    ("containerrecreaterequest/8", &["a grace period begins once"]),
    (
        "containerrecreaterequest/11",
        &["a container that succeeded is a new one"],
    ),
    (
        "containerrecreaterequest/33",
        &[
            "a pod is out of service while its request runs",
            "a request holds its pod until it ends",
        ],
    ),
    (
        "daemonset/14",
        &["a second pod is for an update", "revisions before pods"],
    ),
    ("daemonset/24", &["a pod has its form"]),
    (
        "ephemeraljob/3",
        &[
            "a job writes ephemeral containers only",
            "a pod gets the container once",
        ],
    ),
    (
        "imagepulljob/1",
        &[
            "an agent writes twice for an image that it pulls",
            "originals stay",
        ],
    ),
    (
        "persistentpodstate/8",
        &[
            "claims go with pods that are scaled away",
            "pods, nodes and workloads are only read",
            "unavailable first",
        ],
    ),
    (
        "persistentpodstate/17",
        &["labels of a record are those of its node"],
    ),
    ("persistentpodstate/26", &["available when its hook allows"]),
    ("persistentpodstate/29", &["released when it left"]),
    (
        "podprobemarker/1",
        &[
            "a marker that is deleted probes nothing",
            "conditions are results",
        ],
    ),
    ("podunavailablebudget/5", &["pods of a budget are only named"]),
    (
        "resourcedistribution/1",
        &["foreign objects stay", "only copies are written"],
    ),
    ("resourcedistribution/24", &["excluded namespaces get no copy"]),
    (
        "restart/4",
        &[
            "a request is what the command line says",
            "a run restarts a pod once",
        ],
    ),
    (
        "restart/6",
        &[
            "a request is deleted when its time to live is over",
            "a request with a key is held back",
            "a restart creates requests and nothing else",
            "nothing foreign is touched",
            "one pod for one place",
            "requests write conditions of pods only",
            "the agent learns what the pod reports",
        ],
    ),
    (
        "sidecarset/8",
        &["status of a set fits together", "upgrades go to the newest"],
    ),
    ("sidecarset/9", &["injection keeps the pod"]),
    (
        "sidecarset/16",
        &[
            "a set touches nothing foreign",
            "a specification is its author's",
            "pods of no set are left alone",
            "pods of others are only changed",
            "revisions of a set are stable",
            "sets take turns",
            "status of a set reports what was",
        ],
    ),
    (
        "sidecarterminator/5",
        &[
            "a pod ends before sidecars that do not count",
            "one request of a pod after the other",
            "pods are patched only",
            "requests are created and ended",
            "what has ended is not stopped",
        ],
    ),
    ("sidecarterminator/6", &["a request belongs to its pod"]),
    (
        "sidecarterminator/21",
        &["only images of sidecars on virtual nodes change"],
    ),
    (
        "statefulset/26",
        &[
            "a pod has its identity",
            "a reason for each change",
            "claims are not deleted",
            "claims before their pod",
            "claims have their names",
            "stale claims are waited for",
        ],
    ),
    (
        "uniteddeployment/17",
        &["pods are left to their workloads", "revisions of others stay"],
    ),
    (
        "uniteddeployment/30",
        &["a UnitedDeployment that is deleted writes nothing"],
    ),
    ("workloadspread/8", &["pods move when no node takes them in time"]),
    ("workloadspread/32", &["pods of a spread get metadata only"]),
];
