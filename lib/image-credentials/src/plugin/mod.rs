//! The kubelet's credential provider plugins: programs that are asked for the credentials of an image.

mod cache;
mod config;
mod exec;
mod protocol;

pub use config::{PluginConfig, PluginConfigError};
pub use exec::{PluginError, PluginFailure, Plugins};
pub use protocol::ResponseError;

use serde::{Deserialize, Deserializer};

/// A duration as Go writes it, `12h`, which is not negative.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<std::time::Duration>, D::Error> {
    use serde::de::Error as _;

    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let read = go_compat::duration::parse(&text).map_err(D::Error::custom)?;
    let read = std::time::Duration::try_from(read);
    read.map(Some)
        .map_err(|_| D::Error::custom("a duration is negative"))
}
