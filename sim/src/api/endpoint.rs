//! Where a service is reached.

use serde_json::Value;

use super::Api;
use crate::store::{Key, ResourceId};
use crate::validation::text;

impl Api {
    /// An address and a port behind a service's port: the first ready endpoint of its endpoint slices.
    ///
    /// # Errors
    /// There is none; the text is the reason, as a server gives it.
    pub fn service_endpoint(&self, namespace: &str, name: &str, port: u16) -> Result<(String, u16), String> {
        let services = ResourceId {
            group: "".into(),
            plural: "services".into(),
        };
        let service = self.store.get(&services, &Key::new(namespace, name));
        let service = service
            .ok_or_else(|| format!("service {name:?} not found"))?
            .value();
        let ports = service.pointer("/spec/ports").and_then(Value::as_array);
        let named = ports
            .into_iter()
            .flatten()
            .find(|one| one.get("port") == Some(&port.into()));
        let named = named.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
        let slices = ResourceId {
            group: "discovery.k8s.io".into(),
            plural: "endpointslices".into(),
        };
        let slices = self.store.collection(&slices).into_iter();
        slices
            .flat_map(|collection| collection.range(namespace, None))
            .filter(|(_, slice)| slice.head.label("kubernetes.io/service-name") == Some(name))
            .find_map(|(_, slice)| endpoint(&slice.value(), text(named, "name")))
            .ok_or_else(|| format!("no endpoints available for service {name:?}"))
    }
}

fn endpoint(slice: &Value, port: &str) -> Option<(String, u16)> {
    let list = |name: &str| slice.get(name).and_then(Value::as_array).into_iter().flatten();
    let number = list("ports").find(|one| text(one, "name") == port)?.get("port")?;
    let ready = |one: &&Value| one.pointer("/conditions/ready") != Some(&Value::Bool(false));
    let address = list("endpoints").find(ready)?.pointer("/addresses/0")?.as_str()?;
    Some((address.to_owned(), u16::try_from(number.as_u64()?).ok()?))
}
