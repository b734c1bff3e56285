//! A container of a SidecarSet as Go writes it: those of core/v1, and after them six members of its own.

use go_compat::pod_template::{
    CoreType,
    table::{Kind, Struct, always, unless_empty},
};
use serde_json::{Map, Value};

const STRINGS: Kind = Kind::List(&Kind::String);

/// What a sidecar has beyond a container.
static OWN: Struct = Struct {
    fields: &[
        unless_empty("podInjectPolicy", Kind::String),
        unless_empty("upgradeStrategy", Kind::Struct(&UPGRADE)),
        unless_empty("shareVolumePolicy", Kind::Struct(&SHARE)),
        unless_empty("shareVolumeDevicePolicy", Kind::Pointer(&Kind::Struct(&SHARE))),
        unless_empty("transferEnv", Kind::List(&Kind::Struct(&TRANSFER))),
        unless_empty("resourcesPolicy", Kind::Pointer(&Kind::Struct(&RESOURCES))),
    ],
};

static UPGRADE: Struct = Struct {
    fields: &[
        unless_empty("upgradeType", Kind::String),
        unless_empty("hotUpgradeEmptyImage", Kind::String),
    ],
};

static SHARE: Struct = Struct {
    fields: &[unless_empty("type", Kind::String)],
};

static TRANSFER: Struct = Struct {
    fields: &[
        unless_empty("sourceContainerName", Kind::String),
        unless_empty("sourceContainerNameFrom", Kind::Pointer(&Kind::Struct(&SOURCE))),
        unless_empty("envName", Kind::String),
        unless_empty("envNames", STRINGS),
    ],
};

static SOURCE: Struct = Struct {
    fields: &[unless_empty("fieldRef", Kind::Pointer(&Kind::Struct(&FIELD)))],
};

static FIELD: Struct = Struct {
    fields: &[
        unless_empty("apiVersion", Kind::String),
        always("fieldPath", Kind::String),
    ],
};

static RESOURCES: Struct = Struct {
    fields: &[
        unless_empty("targetContainersMode", Kind::String),
        unless_empty("targetContainersNameRegex", Kind::String),
        always("resourcesExpr", Kind::Struct(&EXPRESSIONS)),
    ],
};

static EXPRESSIONS: Struct = Struct {
    fields: &[
        unless_empty("limits", Kind::Pointer(&Kind::Struct(&AMOUNTS))),
        unless_empty("requests", Kind::Pointer(&Kind::Struct(&AMOUNTS))),
    ],
};

static AMOUNTS: Struct = Struct {
    fields: &[
        unless_empty("cpu", Kind::String),
        unless_empty("memory", Kind::String),
    ],
};

static SECRET: Struct = Struct {
    fields: &[unless_empty("name", Kind::String)],
};

static METADATA_PATCH: Struct = Struct {
    fields: &[
        unless_empty("annotations", Kind::Map(&Kind::String)),
        unless_empty("patchPolicy", Kind::String),
    ],
};

/// The text that is hashed for one sidecar.
pub(super) fn sidecar_json(sidecar: &Value) -> String {
    let (core, own) = split(sidecar);
    let (mut text, own) = (CoreType::Container.typed_json(&core), OWN.typed_json(&own));
    text.pop();
    text.push(',');
    text.push_str(own.strip_prefix('{').unwrap_or(&own));
    text
}

/// A sidecar as Go would write it.
pub(super) fn sidecar(sidecar: &Value) -> Value {
    let (core, own) = split(sidecar);
    match (CoreType::Container.canonical(&core), OWN.canonical(&own)) {
        (Value::Object(mut core), Value::Object(own)) => {
            core.extend(own);
            core.into()
        }
        _ => sidecar.clone(),
    }
}

/// A pull secret as Go would write it.
pub(super) fn secret(secret: &Value) -> Value {
    SECRET.canonical(secret)
}

/// An entry of `patchPodMetadata` as Go would write it.
pub(super) fn metadata_patch(patch: &Value) -> Value {
    METADATA_PATCH.canonical(patch)
}

/// The members a container has, unknown ones included, and those that only a sidecar has.
fn split(sidecar: &Value) -> (Value, Value) {
    let (mut core, mut own) = (Map::new(), Map::new());
    for (name, value) in sidecar.as_object().into_iter().flatten() {
        let part = if OWN.field(name).is_some() {
            &mut own
        } else {
            &mut core
        };
        part.insert(name.clone(), value.clone());
    }
    (core.into(), own.into())
}

/// Is this a member that a sidecar has and a container has not?
pub fn is_own(name: &str) -> bool {
    OWN.field(name).is_some()
}
