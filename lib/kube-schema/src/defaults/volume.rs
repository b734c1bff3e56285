//! Defaults of volumes.

use serde_json::{Map, Value, json};

use super::fill::{each, fill, fill_missing, member, round_quantities};

/// Permission bits of files that come from the API: 0644.
const FILE_MODE: i32 = 0o644;

pub(super) fn volume(volume: &mut Value) {
    let Value::Object(members) = &mut *volume else {
        return;
    };
    if members
        .iter()
        .all(|(name, source)| name == "name" || source.is_null())
    {
        members.insert("emptyDir".to_owned(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = member(volume, name) {
            fill_missing(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = member(volume, "downwardAPI") {
        each(source, "items", field_reference);
    }
    if let Some(source) = member(volume, "projected") {
        each(source, "sources", projection);
    }
    if let Some(source) = member(volume, "hostPath") {
        fill_missing(source, "type", "");
    }
    if let Some(template) =
        member(volume, "ephemeral").and_then(|source| member(source, "volumeClaimTemplate"))
    {
        ephemeral_claim(template);
    }
    legacy(volume);
}

fn field_reference(item: &mut Value) {
    if let Some(reference) = member(item, "fieldRef") {
        fill(reference, "apiVersion", "v1");
    }
}

fn projection(source: &mut Value) {
    if let Some(downward) = member(source, "downwardAPI") {
        each(downward, "items", field_reference);
    }
    if let Some(token) = member(source, "serviceAccountToken") {
        fill_missing(token, "expirationSeconds", 3600);
    }
}

fn ephemeral_claim(template: &mut Value) {
    fill_missing(template, "spec", Map::new());
    let Some(spec) = member(template, "spec") else {
        return;
    };
    fill_missing(spec, "volumeMode", "Filesystem");
    if let Some(resources) = member(spec, "resources") {
        round_quantities(resources, "limits");
        round_quantities(resources, "requests");
    }
}

/// Sources that have defaults of their own since before there were storage drivers.
fn legacy(volume: &mut Value) {
    if let Some(source) = member(volume, "iscsi") {
        fill(source, "iscsiInterface", "default");
    }
    if let Some(source) = member(volume, "rbd") {
        fill(source, "pool", "rbd");
        fill(source, "user", "admin");
        fill(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = member(volume, "azureDisk") {
        fill_missing(source, "cachingMode", "ReadWrite");
        fill_missing(source, "fsType", "ext4");
        fill_missing(source, "readOnly", false);
        fill_missing(source, "kind", "Shared");
    }
    if let Some(source) = member(volume, "scaleIO") {
        fill(source, "storageMode", "ThinProvisioned");
        fill(source, "fsType", "xfs");
    }
}
