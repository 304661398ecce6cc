//! What `anneal node deploy` and `anneal node rebuild` take along: steps, the image, and what the instance reads at its
//! first boot.

use super::instance_info::{HELLO_KEYS, IMAGE_KEYS, InstanceInfo, WAIT_FOR_HELLO};
use super::request::{Of, Request};
use crate::config_drive;
use crate::failure::Failure;
use crate::first_boot::FirstBoot;
use crate::values::steps;
use crate::wait::WaitTarget;
use clap::Args;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What a deployment takes along.
#[derive(Debug, Args)]
pub struct Deployment {
    #[command(flatten)]
    of: Of,
    /// The whole-disk image to write, raw or qcow2, plain or compressed: its URL. It becomes part of the node's instance_info;
    /// without this option what is there already is written.
    #[arg(long, value_name = "URL", requires = "checksum")]
    image: Option<String>,
    /// What the image must be: a SHA-256 or SHA-512 digest, or the URL of a list of digests.
    #[arg(long, value_name = "DIGEST|URL", requires = "image", value_parser = checksum)]
    checksum: Option<Checksum>,
    /// Format of the image, where it is not to be detected.
    #[arg(long, value_name = "FORMAT", requires = "image", value_parser = ["raw", "qcow2"])]
    image_format: Option<String>,
    /// The deployment is done when the instance says that it runs: cloud-init requests a URL of the controller at the end of its
    /// first boot. If that does not come within so many seconds, the deployment has failed.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1800",
          value_parser = clap::value_parser!(u32).range(10..=86400), conflicts_with = "config_drive")]
    wait_for_hello: Option<u32>,
    #[command(flatten)]
    first_boot: FirstBoot,
    /// Data for the instance's first boot, ready-made: an ISO image, plain, gzipped or in base64; or a JSON object with
    /// meta_data, user_data, network_data.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user_data", "ssh_key", "hostname", "network_data"])]
    config_drive: Option<PathBuf>,
    /// Deploy steps in addition to the default ones, a JSON list of {"interface", "step", "args", "priority"}: a
    /// file, `-` for standard input, or the JSON itself. Priority 0 switches a step off.
    #[arg(long, value_name = "FILE|-|JSON")]
    deploy_steps: Option<String>,
}

/// How the image is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Checksum {
    /// Unless it is to be seen in the list.
    algorithm: Option<&'static str>,
    value: String,
}

/// `DIGEST`, `URL`, or either with `sha256:` or `sha512:` before it.
fn checksum(text: &str) -> Result<Checksum, String> {
    const ALGORITHMS: [(&str, usize); 2] = [("sha256", 64), ("sha512", 128)];
    let is_digest = |value: &str, digits: usize| {
        value.len() == digits && value.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    for (algorithm, digits) in ALGORITHMS {
        let prefixed = text.strip_prefix(algorithm).and_then(|rest| rest.strip_prefix(':'));
        let named = prefixed.is_some_and(|value| is_digest(value, digits) || value.contains("://"));
        if named || prefixed.is_none() && is_digest(text, digits) {
            let value = prefixed.unwrap_or(text).to_owned();
            return Ok(Checksum { algorithm: Some(algorithm), value });
        }
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(Checksum { algorithm: None, value: text.to_owned() });
    }
    Err("a SHA-256 or SHA-512 digest, or the URL of a list of digests, is wanted".to_owned())
}

impl Deployment {
    pub(super) fn request(self, target: &str) -> Result<Request, Failure> {
        let mut body = json!({"target": target});
        if let Some(source) = &self.deploy_steps {
            body["deploy_steps"] = steps("--deploy-steps", source)?;
        }
        if let Some(path) = &self.config_drive {
            body["configdrive"] = config_drive::read(path)?;
        } else if let Some(parts) = self.first_boot.parts()? {
            body["configdrive"] = parts;
        }
        let instance_info = self.image();
        let goal = Some(WaitTarget::State("active".to_owned()));
        Ok(Request { of: self.of, body, goal, secret: None, instance_info })
    }

    /// What `instance_info` is to say of the image and of the hello, if one of them is given.
    fn image(&self) -> Option<InstanceInfo> {
        let image = self.image_fields();
        let keys = if image.is_some() { IMAGE_KEYS } else { HELLO_KEYS };
        let mut fields = image.unwrap_or_default();
        fields.extend(self.wait_for_hello.map(|seconds| (WAIT_FOR_HELLO.to_owned(), seconds.into())));
        (!fields.is_empty()).then_some(InstanceInfo { keys, fields })
    }

    fn image_fields(&self) -> Option<Map<String, Value>> {
        let (source, checksum) = (self.image.as_ref()?, self.checksum.as_ref()?);
        let mut fields = Map::new();
        fields.insert("image_source".to_owned(), source.as_str().into());
        let value = checksum.value.as_str().into();
        match checksum.algorithm {
            None => fields.insert("image_checksum".to_owned(), value),
            Some(algorithm) => {
                fields.insert("image_os_hash_algo".to_owned(), algorithm.into());
                fields.insert("image_os_hash_value".to_owned(), value)
            }
        };
        if let Some(format) = &self.image_format {
            fields.insert("image_disk_format".to_owned(), format.as_str().into());
        }
        Some(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_a_digest_or_a_list_of_digests() {
        let (short, long) = ("0a".repeat(32), "0b".repeat(64));
        let read = |text: &str| checksum(text).map(|read| (read.algorithm, read.value));
        assert_eq!(read(&short), Ok((Some("sha256"), short.clone())));
        assert_eq!(read(&format!("sha256:{short}")), Ok((Some("sha256"), short.clone())));
        assert_eq!(read(&long), Ok((Some("sha512"), long.clone())));
        assert_eq!(read("http://m/SHA256SUMS"), Ok((None, "http://m/SHA256SUMS".to_owned())));
        assert_eq!(read("sha512:http://m/SUMS"), Ok((Some("sha512"), "http://m/SUMS".to_owned())));
        for bad in ["", "0a", &format!("sha512:{short}"), &format!("md5:{short}"), "ftp://m/x", &short[1..]] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
