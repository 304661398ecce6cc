//! `clouds.yaml`, from which clients built on openstacksdk read where a controller is.

use crate::World;
use crate::controller::Controller;
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Writes one with this controller under each of these names, as the book says to.
pub fn write(world: &World, controller: &Controller, names: &[&str]) -> Result<PathBuf> {
    let endpoint = controller.endpoint.as_str();
    let (auth_type, auth) = match controller.token() {
        Some(token) => {
            ("http_basic", json!({"endpoint": endpoint, "username": "contract", "password": token}))
        }
        None => ("none", json!({"endpoint": endpoint})),
    };
    // Some look for an image, and for machines of Nova, unless the file excludes them.
    let cloud: Value =
        json!({"auth_type": auth_type, "auth": auth, "has_compute": false, "has_image": false});
    let clouds: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), cloud.clone())).collect();
    let path = world.dir.join("clouds.yaml");
    // JSON is YAML.
    std::fs::write(&path, json!({"clouds": clouds}).to_string())?;
    Ok(path)
}
