//! What a verb puts into the node's `instance_info` before it is sent.

use crate::client::Client;
use crate::failure::Failure;
use reqwest::Method;
use serde_json::{Map, Value, json};

/// Key that says for how many seconds the hello of the instance is awaited.
pub(super) const WAIT_FOR_HELLO: &str = "anneal_wait_for_hello";

/// Keys that say which image is written. All of them are set or removed together: a digest of an earlier image would be
/// compared with the new one, and not every image says hello.
pub(super) const IMAGE_KEYS: &[&str] = &[
    "image_source",
    "image_checksum",
    "image_os_hash_algo",
    "image_os_hash_value",
    "image_disk_format",
    WAIT_FOR_HELLO,
];

/// What is set where only the hello is asked for, of the image that is named already.
pub(super) const HELLO_KEYS: &[&str] = &[WAIT_FOR_HELLO];

/// The key with the public keys that may log in to the rescue ramdisk.
pub(super) const RESCUE_KEYS: &str = "rescue_authorized_keys";

/// A part of `instance_info`.
pub(super) struct InstanceInfo {
    /// The keys of this part.
    pub(super) keys: &'static [&'static str],
    /// Their values; the other keys are removed.
    pub(super) fields: Map<String, Value>,
}

impl InstanceInfo {
    /// Puts it into the node, in place of what is there under its keys.
    pub(super) async fn set(&self, client: &Client, node: &str) -> Result<(), Failure> {
        let seen = client.get(&["nodes", node], &[]).await?;
        let patch = self.patch(&seen["instance_info"]);
        client.send(Method::PATCH, &["nodes", node], &[], Some(patch)).await?;
        Ok(())
    }

    fn patch(&self, present: &Value) -> Value {
        let path = |key: &str| format!("/instance_info/{key}");
        let change = |key: &&str| match self.fields.get(*key) {
            Some(value) => Some(json!({"op": "add", "path": path(key), "value": value})),
            None if present.get(*key).is_some() => Some(json!({"op": "remove", "path": path(key)})),
            None => None,
        };
        self.keys.iter().filter_map(change).collect()
    }
}
