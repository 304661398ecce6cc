//! The image that a deployment writes, in the node's `instance_info`.

use crate::client::Client;
use crate::failure::Failure;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Keys of `instance_info` that say which image is written. All of them are set or removed together: a digest of an earlier
/// image would be compared with the new one.
const IMAGE_KEYS: [&str; 5] =
    ["image_source", "image_checksum", "image_os_hash_algo", "image_os_hash_value", "image_disk_format"];

/// The image's part of `instance_info`.
pub(super) struct Image {
    pub(super) fields: Map<String, Value>,
}

impl Image {
    /// Puts it into the node, in place of what is there of another image.
    pub(super) async fn set(&self, client: &Client, node: &str) -> Result<(), Failure> {
        let seen = client.get(&["nodes", node], &[]).await?;
        let patch = self.patch(&seen["instance_info"]);
        client.send(Method::PATCH, &["nodes", node], &[], Some(patch)).await?;
        Ok(())
    }

    fn patch(&self, present: &Value) -> Value {
        let path = |key: &str| format!("/instance_info/{key}");
        let change = |key: &str| match self.fields.get(key) {
            Some(value) => Some(json!({"op": "add", "path": path(key), "value": value})),
            None if present.get(key).is_some() => Some(json!({"op": "remove", "path": path(key)})),
            None => None,
        };
        IMAGE_KEYS.into_iter().filter_map(change).collect()
    }
}
