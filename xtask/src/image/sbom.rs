//! The bill of materials, as CycloneDX.

use serde_json::{Map, Value, json};

use super::packages::Package;
use super::source::Source;

/// The document.
pub(super) fn write(packages: &[Package], source: &Source) -> Value {
    let (own, others): (Vec<&Package>, Vec<&Package>) =
        packages.iter().partition(|package| package.name == "kruise");
    let references = packages.iter().map(|package| {
        let on = package
            .depends_on
            .iter()
            .map(|(name, version)| reference(name, version));
        json!({"ref": reference(&package.name, &package.version), "dependsOn": on.collect::<Vec<_>>()})
    });
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": source.date(),
            "component": own.first().map(|package| component(package, "application")),
            "properties": [{"name": "commit", "value": source.commit}],
        },
        "components": others.iter().map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": references.collect::<Vec<_>>(),
    })
}

fn reference(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

fn component(package: &Package, kind: &str) -> Value {
    let reference = reference(&package.name, &package.version);
    let mut component = Map::new();
    let mut put = |name: &str, value: Value| component.insert(name.to_owned(), value);
    put("type", json!(kind));
    put("bom-ref", json!(reference));
    put("name", json!(package.name));
    put("version", json!(package.version));
    if let Some(licence) = &package.licence {
        put("licenses", json!([{"expression": licence}]));
    }
    // Packages of this workspace are published nowhere.
    if let Some(checksum) = &package.checksum {
        put("purl", json!(reference));
        put("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
    }
    if let Some(url) = &package.repository {
        put("externalReferences", json!([{"type": "vcs", "url": url}]));
    }
    Value::Object(component)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_package_is_a_component_and_every_dependency_refers_to_one() {
        let package = |name: &str, on: &[&str], checksum: Option<&str>| Package {
            name: name.into(),
            version: "1.0.0".into(),
            licence: Some("MIT".into()),
            repository: None,
            checksum: checksum.map(str::to_owned),
            folder: "/".into(),
            depends_on: on
                .iter()
                .map(|name| ((*name).to_owned(), "1.0.0".to_owned()))
                .collect::<BTreeSet<_>>(),
        };
        let packages = [
            package("kruise", &["serde"], None),
            package("serde", &[], Some("12")),
        ];
        let source = Source {
            version: "1.0.0".into(),
            commit: "c0ffee".into(),
            seconds: 0,
        };
        let written = write(&packages, &source);
        assert_eq!(
            written["metadata"]["component"]["bom-ref"],
            "pkg:cargo/kruise@1.0.0"
        );
        let serde = &written["components"][0];
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(serde["hashes"][0]["content"], "12");
        assert_eq!(serde["licenses"][0]["expression"], "MIT");
        assert_eq!(
            written["dependencies"][0]["dependsOn"],
            json!(["pkg:cargo/serde@1.0.0"])
        );
    }
}
