//! What a deployment with the deploy interface `direct` writes: read from `instance_info`, and judged before the node is
//! touched. The words are Ironic's where Ironic rejects the same (ironic/deploy, 39.0.0).

use crate::capabilities;
pub use crate::deploy_step::DEPLOY;
use crate::hello::HelloError;
use crate::node::Node;
use crate::step::CatalogueStep;
use serde_json::{Map, Value, json};
use std::fmt;
use uuid::Uuid;

/// Name of the deploy interface that writes images.
pub const DIRECT: &str = "direct";

/// Key of `instance_info` that keeps the configuration drive. A secret.
pub const CONFIGDRIVE: &str = "configdrive";

/// The step of [`DIRECT`] in which the agent writes the image.
pub const WRITE_IMAGE: &str = "write_image";

/// The step of [`DIRECT`] in which the agent makes the firmware find the image.
pub const PREPARE_INSTANCE_BOOT: &str = "prepare_instance_boot";

/// The step of [`DIRECT`] that starts the node from its disk.
pub const BOOT_INSTANCE: &str = "boot_instance";

/// Why a node with ironic-python-agent is not deployed from `file://`.
pub const NO_FILES_FOR_IPA: &str = "a file:// image is served to Anneal's agent only: ironic-python-agent knows no certificate of \
                                    the controller; put the image on an HTTP server";

/// Name of the deploy interface whose images are written by steps that the user names.
pub const CUSTOM_AGENT: &str = "custom-agent";

/// Whether a step is this one of an interface that deploys with an agent.
pub fn is_step(step: &CatalogueStep, name: &str) -> bool {
    matches!(step.provider.as_str(), DIRECT | CUSTOM_AGENT) && step.step == name
}

/// Root device hints that Ironic's API accepts.
const HINTS: [&str; 11] = [
    "size",
    "model",
    "wwn",
    "serial",
    "vendor",
    "wwn_with_extension",
    "wwn_vendor_extension",
    "name",
    "rotational",
    "hctl",
    "by_path",
];

/// Why a node cannot be deployed as its `instance_info` asks for. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// No image is named.
    #[error(
        "Node {0} failed to validate deploy image info. Some parameters were missing. Missing are: \
         ['instance_info.image_source']"
    )]
    NoSource(Uuid),
    /// Nothing to compare the image with.
    #[error(
        "image_source's \"image_checksum\", or \"image_os_hash_algo\" and \"image_os_hash_value\" must be provided in \
         instance_info for node {0}"
    )]
    NoChecksum(Uuid),
    /// Anything else, in one sentence.
    #[error("{0}")]
    Other(String),
}

impl From<HelloError> for ImageError {
    fn from(error: HelloError) -> Self {
        Self::Other(error.to_string())
    }
}

/// Firmware interface that the instance boots with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootMode {
    /// Legacy BIOS.
    Bios,
    /// UEFI.
    Uefi,
}

impl BootMode {
    /// Ironic's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bios => "bios",
            Self::Uefi => "uefi",
        }
    }
}

/// How the image is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Checksum {
    /// `image_os_hash_algo` and `image_os_hash_value`.
    Hash { algorithm: String, value: String },
    /// `image_checksum`: a digest whose algorithm shows in its length, or the URL of a list of digests.
    Plain(String),
}

/// A whole-disk image, and how to write it.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageRequest {
    source: String,
    format: Option<String>,
    checksum: Checksum,
    boot_mode: Option<BootMode>,
}

/// The source may contain a password: it is not shown.
impl fmt::Debug for ImageRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageRequest").field("source", &masked_url(&self.source)).finish_non_exhaustive()
    }
}

impl ImageRequest {
    /// The image that the node's `instance_info` asks for.
    ///
    /// # Errors
    /// What is missing, malformed or not supported.
    pub fn of(node: &Node) -> Result<Self, ImageError> {
        let info = &node.instance_info;
        let source = text(info, "image_source")?.ok_or(ImageError::NoSource(node.uuid))?;
        check_source(source)?;
        check_whole_disk(info)?;
        let format = text(info, "image_disk_format")?;
        if let Some(other) = format.filter(|format| !matches!(*format, "raw" | "gpt" | "qcow2")) {
            return Err(ImageError::Other(format!(
                "image_disk_format '{other}' is not supported. Supported formats are: raw, gpt, qcow2."
            )));
        }
        check_download_source(node)?;
        let boot_mode = boot_mode(node)?;
        check_hints(node)?;
        check_configdrive(info.get(CONFIGDRIVE))?;
        let checksum = checksum(info, node.uuid)?;
        Ok(Self { source: source.to_owned(), format: format.map(str::to_owned), checksum, boot_mode })
    }

    /// The URL as it was given. It may contain a password.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the image is a file of the controller, which only the controller can serve.
    pub fn is_file(&self) -> bool {
        self.source.split_once("://").is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("file"))
    }

    /// The algorithm where one was named, and a digest or the URL of a list of digests.
    pub fn digest(&self) -> (Option<&str>, &str) {
        match &self.checksum {
            Checksum::Hash { algorithm, value } => (Some(algorithm), value),
            Checksum::Plain(value) => (None, value),
        }
    }

    /// Firmware interface, where node or instance names one.
    pub fn boot_mode(&self) -> Option<BootMode> {
        self.boot_mode
    }

    /// The digest that the image is checked with; `None` where only the URL of a list of digests is known.
    pub fn known_digest(&self) -> Option<&str> {
        let (Checksum::Hash { value, .. } | Checksum::Plain(value)) = &self.checksum;
        Some(value.as_str()).filter(|value| !value.contains("://"))
    }

    /// `image_info` of the agent's step `deploy.write_image`, as Ironic sends it.
    pub fn as_sent(&self, node: &Node) -> Value {
        let path = self.source.split(['?', '#']).next().unwrap_or_default();
        let mut sent = json!({
            "id": path.rsplit('/').next().unwrap_or_default(),
            "urls": [self.source],
            "disk_format": self.format,
            "container_format": null,
            "stream_raw_images": true,
            "node_uuid": node.uuid,
        });
        match &self.checksum {
            Checksum::Hash { algorithm, value } => {
                sent["os_hash_algo"] = json!(algorithm);
                sent["os_hash_value"] = json!(value);
            }
            Checksum::Plain(value) => sent["checksum"] = json!(value),
        }
        if let Some(secret) = node.instance_info.get("image_request_authorization_secret") {
            sent["image_request_authorization"] = secret.clone();
        }
        sent
    }

    /// A text that may quote the image's URL, without the secrets of that URL.
    pub fn masked(&self, text: &str) -> String {
        text.replace(&self.source, &masked_url(&self.source))
    }
}

/// A URL without user, password, query and fragment: any of them may be a secret.
pub fn masked_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (path, secret) = url.split_at(end);
    let tail = if secret.is_empty() { "" } else { "?******" };
    let Some((scheme, rest)) = path.split_once("://") else { return format!("{path}{tail}") };
    let host_end = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_end);
    let shown = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("******@{host}"));
    format!("{scheme}://{shown}{path}{tail}")
}

/// A text field; `null` counts as absent.
pub(crate) fn text<'a>(info: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ImageError> {
    match info.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(ImageError::Other(format!("instance_info['{name}'] is not a string"))),
    }
}

fn check_source(source: &str) -> Result<(), ImageError> {
    let scheme = source.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let reason = match scheme.as_deref() {
        Some("http" | "https" | "file") => return Ok(()),
        Some(scheme) => format!("Image download protocol {scheme} is not supported"),
        None => "it is no URL; images of the Image service are not supported".to_owned(),
    };
    let shown = masked_url(source);
    Err(ImageError::Other(format!("Validation of image href {shown} failed, reason: {reason}.")))
}

/// Only images of whole disks are written: they bring their partitions, file systems and boot loader.
fn check_whole_disk(info: &Map<String, Value>) -> Result<(), ImageError> {
    let is_set = |name: &str| info.get(name).is_some_and(|value| !value.is_null());
    let partition = match text(info, "image_type")? {
        None => is_set("kernel") || is_set("ramdisk"),
        Some("whole-disk") => false,
        Some("partition") => true,
        Some(other) => {
            return Err(ImageError::Other(format!(
                "image_type '{other}' is not supported: it is \"whole-disk\", or not set"
            )));
        }
    };
    if partition {
        return Err(ImageError::Other(
            "partition images (image_type \"partition\", or a kernel and a ramdisk) are not supported: use a whole-disk \
             image, which brings its partitions and its boot loader"
                .to_owned(),
        ));
    }
    Ok(())
}

fn check_download_source(node: &Node) -> Result<(), ImageError> {
    let given = [&node.instance_info, &node.driver_info].map(|fields| text(fields, "image_download_source"));
    let [instance, driver] = given;
    match instance?.or(driver?) {
        None | Some("http") => Ok(()),
        Some(known @ ("swift" | "local")) => {
            Err(ImageError::Other(format!("image_download_source \"{known}\" is not supported: use http")))
        }
        Some(other) => Err(ImageError::Other(format!(
            "Invalid value for image_download_source: \"{other}\". Valid values are swift, http or local."
        ))),
    }
}

/// The boot mode of `capabilities`: the instance's wins. Other capabilities that would change the deployment are checked.
pub(crate) fn boot_mode(node: &Node) -> Result<Option<BootMode>, ImageError> {
    let instance = match node.instance_info.get("capabilities") {
        None | Some(Value::Null) => Map::new(),
        Some(given) => parsed_capabilities(given).ok_or_else(|| {
            ImageError::Other(format!(
                "Error parsing capabilities from Node {} instance_info field. A dictionary or a \"jsonified\" dictionary \
                 is expected.",
                node.uuid
            ))
        })?,
    };
    let allowed = |name: &str, words: &[&str]| match instance.get(name).map(|value| value.as_str()) {
        Some(given) if !given.is_some_and(|given| words.contains(&given)) => Err(ImageError::Other(format!(
            "The parameter '{name}' from instance_info['capabilities'] has an invalid value: '{}'. Acceptable values are: \
             {}.",
            given.unwrap_or("not a string"),
            words.join(", ")
        ))),
        _ => Ok(()),
    };
    allowed("boot_mode", &["bios", "uefi"])?;
    allowed("disk_label", &["msdos", "gpt"])?;
    let wants_secure_boot = |value: &Value| match value {
        Value::Bool(wanted) => *wanted,
        Value::String(word) => word.eq_ignore_ascii_case("true"),
        _ => false,
    };
    if instance.get("secure_boot").is_some_and(wants_secure_boot) {
        return Err(ImageError::Other(
            "capability secure_boot is not supported: the ramdisk that writes the image is not signed"
                .to_owned(),
        ));
    }
    let of_node = || capabilities::of(node, capabilities::BOOT_MODE);
    let word = instance.get("boot_mode").and_then(Value::as_str).or_else(of_node);
    Ok(word.and_then(|word| match word {
        "bios" => Some(BootMode::Bios),
        "uefi" => Some(BootMode::Uefi),
        _ => None,
    }))
}

/// An object, or the JSON text of one.
fn parsed_capabilities(given: &Value) -> Option<Map<String, Value>> {
    match given {
        Value::Object(fields) => Some(fields.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    }
}

/// The form of a stored configuration drive; anything can be patched into `instance_info`.
fn check_configdrive(drive: Option<&Value>) -> Result<(), ImageError> {
    match drive {
        None | Some(Value::Null | Value::String(_) | Value::Object(_)) => Ok(()),
        Some(_) => Err(ImageError::Other(
            "instance_info['configdrive'] is neither an object nor an ISO image (gzipped, in base64) nor its URL"
                .to_owned(),
        )),
    }
}

/// The names of the hints; the agent reads their values, which only it can compare with disks.
fn check_hints(node: &Node) -> Result<(), ImageError> {
    let (hints, place) = match node.instance_info.get("root_device").filter(|hints| !hints.is_null()) {
        Some(hints) => (hints, "instance_info"),
        None => match node.properties.get("root_device").filter(|hints| !hints.is_null()) {
            Some(hints) => (hints, "properties"),
            None => return Ok(()),
        },
    };
    let refuse = |why: String| {
        ImageError::Other(format!(
            "Failed to validate the root device hints {hints} (from the node's {place}) for node {}: {why}",
            node.uuid
        ))
    };
    let Value::Object(fields) = hints else { return Err(refuse("they are not an object".to_owned())) };
    let unknown: Vec<&str> = fields.keys().map(String::as_str).filter(|name| !HINTS.contains(name)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (unknown, known) = (unknown.join(", "), HINTS.join(", "));
    Err(refuse(format!("The hints \"{unknown}\" are invalid. Valid hints are: \"{known}\"")))
}

fn checksum(info: &Map<String, Value>, node: Uuid) -> Result<Checksum, ImageError> {
    let (algorithm, value) = (text(info, "image_os_hash_algo")?, text(info, "image_os_hash_value")?);
    let plain = text(info, "image_checksum")?;
    match (algorithm, value, plain) {
        (Some(algorithm), Some(value), _) => {
            let digits = match algorithm {
                "sha256" => 64,
                "sha512" => 128,
                other => {
                    return Err(ImageError::Other(format!(
                        "image_os_hash_algo '{other}' is not supported: use sha256 or sha512"
                    )));
                }
            };
            let fits = value.contains("://") || is_digest(value, digits);
            if !fits {
                return Err(ImageError::Other(format!(
                    "image_os_hash_value is no {algorithm} digest: {digits} hexadecimal digits"
                )));
            }
            Ok(Checksum::Hash { algorithm: algorithm.to_owned(), value: value.to_owned() })
        }
        (None, None, Some(plain)) => {
            if plain.contains("://") || is_digest(plain, 64) || is_digest(plain, 128) {
                return Ok(Checksum::Plain(plain.to_owned()));
            }
            let why = if is_digest(plain, 32) {
                "image_checksum is an MD5 digest, which proves nothing: use a SHA-256 or SHA-512 digest"
            } else {
                "image_checksum is neither a SHA-256 nor a SHA-512 digest, nor the URL of a list of digests"
            };
            Err(ImageError::Other(why.to_owned()))
        }
        // A value without its algorithm is rejected even next to a checksum, as in Ironic.
        _ => Err(ImageError::NoChecksum(node)),
    }
}

fn is_digest(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;
