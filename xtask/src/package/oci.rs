//! An image of the Open Container Initiative, as one tar archive of its layout (image-spec v1.1: `image-layout.md`,
//! `manifest.md`, `config.md`), which podman, skopeo and Docker from 25 on load.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Plan;
use super::base::USER;
use super::contents::CONFIG;
use super::tree::Tree;
use crate::sh;

/// The image as it is pulled stays below this many bytes.
const BUDGET: usize = 40_000_000;

/// What is in one layer, and what is said of it.
pub struct Layer<'a> {
    pub about: &'a str,
    pub tree: &'a Tree,
}

/// A blob with the media type of what it holds.
struct Blob {
    media_type: &'static str,
    bytes: Vec<u8>,
}

impl Blob {
    fn json(media_type: &'static str, value: &Value) -> Self {
        Self { media_type, bytes: value.to_string().into_bytes() }
    }

    fn descriptor(&self) -> Value {
        let digest = format!("sha256:{}", sh::sha256(&self.bytes));
        json!({ "mediaType": self.media_type, "digest": digest, "size": self.bytes.len() })
    }
}

/// The archive. Fails where what a machine would pull is above [`BUDGET`], unless the programs are not optimized.
pub fn build(plan: &Plan, layers: &[Layer]) -> Result<Vec<u8>> {
    let (mut blobs, mut diffs, mut history) = (Vec::new(), Vec::new(), Vec::new());
    let created = super::rfc3339(plan.epoch)?;
    for layer in layers {
        let tar = layer.tree.tar(plan.epoch)?;
        diffs.push(format!("sha256:{}", sh::sha256(&tar)));
        history
            .push(json!({ "created": created, "created_by": "cargo xtask package", "comment": layer.about }));
        let packed = plan.zstd(&tar)?;
        println!("  layer  {:>11} bytes   {}", packed.len(), layer.about);
        blobs.push(Blob { media_type: "application/vnd.oci.image.layer.v1.tar+zstd", bytes: packed });
    }
    let config = Blob::json(
        "application/vnd.oci.image.config.v1+json",
        &config(plan, &created, &json!({ "type": "layers", "diff_ids": diffs }), &json!(history)),
    );
    let manifest = Blob::json(
        "application/vnd.oci.image.manifest.v1+json",
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor(),
            "layers": blobs.iter().map(Blob::descriptor).collect::<Vec<_>>(),
        }),
    );
    let mut index = manifest.descriptor();
    // Debian's tilde is none of the characters of a reference (annotations.md).
    let tag = plan.version.replace('~', "-");
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
    index["platform"] = json!({ "architecture": "amd64", "os": "linux" });
    let index = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [index] });
    blobs.extend([config, manifest]);
    let pulled: usize = blobs.iter().map(|blob| blob.bytes.len()).sum();
    println!("  image  {pulled:>11} bytes   of {BUDGET} allowed");
    within_budget(pulled, plan.debug)?;
    let mut layout = Tree::default();
    layout.file("oci-layout", 0o644, json!({ "imageLayoutVersion": "1.0.0" }).to_string().into_bytes());
    layout.file("index.json", 0o644, index.to_string().into_bytes());
    for blob in blobs {
        layout.file(&format!("blobs/sha256/{}", sh::sha256(&blob.bytes)), 0o644, blob.bytes);
    }
    layout.tar(plan.epoch)
}

/// Rejects an image that is too large to pull; programs that are not optimized are for trials.
fn within_budget(pulled: usize, debug: bool) -> Result<()> {
    ensure!(pulled < BUDGET || debug, "the OCI image has {pulled} bytes, allowed are {BUDGET}");
    Ok(())
}

/// How a container of it is started.
fn config(plan: &Plan, created: &str, layers: &Value, history: &Value) -> Value {
    json!({
        "created": created,
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", "RUNTIME_DIRECTORY=/run/anneal"],
            "Entrypoint": ["/usr/bin/anneal-controller"],
            "Cmd": ["--config", format!("/{CONFIG}")],
            "Volumes": { "/var/lib/anneal": {} },
            "ExposedPorts": { "6385/tcp": {}, "8089/tcp": {} },
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": "anneal-controller",
                "org.opencontainers.image.version": plan.version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": layers,
        "history": history,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_above_its_budget_is_refused_unless_its_programs_are_not_optimized() {
        assert!(within_budget(BUDGET - 1, false).is_ok() && within_budget(BUDGET, true).is_ok());
        let error = within_budget(BUDGET, false).unwrap_err().to_string();
        assert_eq!(error, "the OCI image has 40000000 bytes, allowed are 40000000");
    }
}
