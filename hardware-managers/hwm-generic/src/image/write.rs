//! The step: what Ironic sends, the disk, the writing.

use super::record::deployed;
use super::root_disk::{self, Machine, RootDisk, Wanted};
use super::trust::{MirrorTrust, Sent, trust};
use super::watch::StepWatch;
use agent_protocol::deployment::WrittenDisk;
use hwm_sdk::protocol::Level;
use hwm_sdk::{Argument, StepCall, StepContext, StepError, StepOutcome};
use image_writer::source::{Host, NoProxy, Proxies, Proxy, RequestHeaders, Source, pin};
use image_writer::{
    CHECKPOINT_BYTES, Checkpoint, ChecksumSource, Format, Hosts, ImageError, ImageUrl, Limits, Request,
    SourceError, Trust, configdrive,
};
use root_device::{DiskIdentity, Rules};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a controller that has the image may be away. Where one dies, another one that has not got the image yet needs the time
/// to fetch it.
const PATIENCE: Duration = Duration::from_secs(600);
const IMAGE_INFO: &str = "image_info";
const CONFIGDRIVE: &str = "configdrive";

const ARGUMENTS: &[Argument] = &[
    Argument {
        name: IMAGE_INFO,
        description: "What Ironic sends of the image: id, urls, disk_format, checksum, os_hash_algo, os_hash_value. Its \
                      member anneal may have hosts (names, .suffixes, networks that may be asked), never_hosts (networks that \
                      only a network in hosts opens), headers (for the host of the URL), ca (PEM), \
                      pins (fingerprints by host) and pin (fingerprint of the host of the URL) of mirrors, \
                      allow_md5, disk (serial, wwn): the disk of the deployment before, \
                      smallest_root_disk (bytes: without hints no smaller disk is taken), and root_device_strict: \
                      several disks that fit are an error. anneal_copies has URL and pin of the image at other controllers",
        required: true,
        schema: || json!({"type": "object"}),
    },
    Argument {
        name: CONFIGDRIVE,
        description: "An ISO file system, gzipped, in base64, or its URL; it becomes a partition",
        required: false,
        schema: || json!({}),
    },
];

/// The arguments of `write_image`.
pub(crate) const fn arguments() -> &'static [Argument] {
    ARGUMENTS
}

/// What Ironic sends. Members that say nothing about the writing are not looked at.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ImageInfo {
    id: Option<Value>,
    urls: Vec<String>,
    disk_format: Option<String>,
    checksum: Option<String>,
    os_hash_algo: Option<String>,
    os_hash_value: Option<String>,
    image_type: Option<String>,
    kernel: Option<Value>,
    ramdisk: Option<Value>,
    proxies: Option<Map<String, Value>>,
    no_proxy: Option<String>,
    image_server_auth_strategy: Option<String>,
    image_request_authorization: Option<Value>,
    anneal: Addition,
    /// Where our controllers have the image, besides the URL. Not a member of `anneal`: a ramdisk that is older refuses what it
    /// does not know there, and leaves this alone.
    anneal_copies: Option<Vec<ImageCopy>>,
}

/// The image at another controller.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImageCopy {
    url: String,
    pin: Option<String>,
}

/// What our controller adds.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Addition {
    hosts: Vec<String>,
    never_hosts: Vec<String>,
    headers: BTreeMap<String, String>,
    ca: Option<String>,
    pins: BTreeMap<String, Vec<String>>,
    pin: Option<String>,
    allow_md5: bool,
    disk: Option<DiskIdentity>,
    smallest_root_disk: Option<u64>,
    root_device_strict: bool,
}

impl Addition {
    fn rules(&self) -> Rules {
        let smallest = self.smallest_root_disk.unwrap_or(Rules::default().smallest);
        Rules { smallest, strict: self.root_device_strict }
    }
}

fn failed(reason: impl Into<String>) -> StepError {
    StepError::Failed { reason: reason.into(), report: Value::Null }
}

fn wrong(name: &str, problem: impl Into<String>) -> StepError {
    StepError::Argument { name: name.to_owned(), problem: problem.into() }
}

fn parse(image_info: &Value) -> Result<ImageInfo, StepError> {
    // What serde would say of a wrong value may contain it.
    ImageInfo::deserialize(image_info).map_err(|_| wrong(IMAGE_INFO, "a member is of the wrong kind"))
}

/// Where an image comes from that a controller describes like this, where the agent was started without other trust.
///
/// # Errors
/// What is wrong with the description.
pub fn source_of(image_info: &Value) -> Result<Source, StepError> {
    let request = request(&parse(image_info)?, &MirrorTrust::None, &StepContext::new())?;
    Ok(request.source)
}

/// Writes the image of the call to the root disk.
pub(crate) fn run(
    machine: &Machine,
    call: &StepCall,
    context: &StepContext,
) -> Result<StepOutcome, StepError> {
    let info = parse(&call.args[IMAGE_INFO])?;
    let mut request = request(&info, machine.mirrors, context)?;
    request.configdrive = drive(call.args.get(CONFIGDRIVE), &request, &StepWatch::new(context, None))?;
    let interrupted = request.checkpoint.as_ref().map(|checkpoint| &checkpoint.disk);
    let wanted = Wanted { before: info.anneal.disk.as_ref(), interrupted, rules: info.anneal.rules() };
    let RootDisk { probe, others } = root_disk::ready(machine, &call.node, &wanted)
        .map_err(|why| failed(format!("nothing was written to any disk: {why}")))?;
    request.disk = DiskIdentity::of(probe.disk.serial.as_deref(), probe.disk.wwn.as_deref());
    let watch = StepWatch::new(context, Some(&probe.disk));
    let device =
        block::Device::open(machine.roots, &probe).map_err(|error| failed(block::fault::chain(&error)))?;
    let mut written = image_writer::write(&request, &device, &watch);
    if let Err(error) = &written
        && begins_again(error, request.checkpoint.is_some())
    {
        context.log(Level::Warning, &format!("{error}: beginning again"));
        request.checkpoint = None;
        written = image_writer::write(&request, &device, &watch);
    }
    let record = written.map_err(|error| match error {
        ImageError::Cancelled => StepError::Cancelled { report: Value::Null },
        error => failed(format!("the image was not written: {}", block::fault::chain(&error))),
    })?;
    Ok(StepOutcome::Done(result(&info, deployed(&probe.disk, others, &record))))
}

/// Whether the image is to be written again from its beginning.
fn begins_again(error: &ImageError, resumed: bool) -> bool {
    match error {
        // The checksum says whether the new file is the one that is wanted.
        ImageError::Source(SourceError::Changed { .. }) => true,
        // The disk may have lost, with its power, what it had said to be on it.
        ImageError::ReadBack { .. } => resumed,
        _ => false,
    }
}

/// In the words of ironic-python-agent, with the record.
fn result(info: &ImageInfo, image: WrittenDisk) -> Value {
    let id = info.id.as_ref().and_then(Value::as_str).unwrap_or_default();
    let (device, root) = (&image.device, &image.record.disk_id);
    let text = format!("prepare_image: image ({id}) written to device {device} root_uuid={root}");
    json!({ "result": text, "image": image })
}

fn request(info: &ImageInfo, mirrors: &MirrorTrust, context: &StepContext) -> Result<Request, StepError> {
    let of_image = |problem: &str| wrong(IMAGE_INFO, problem);
    let partition = info.image_type.as_deref() == Some("partition");
    let boots_itself = |part: &Option<Value>| part.as_ref().is_none_or(Value::is_null);
    if partition || !boots_itself(&info.kernel) || !boots_itself(&info.ramdisk) {
        return Err(of_image("partition images are not written; use a whole-disk image"));
    }
    if info.image_server_auth_strategy.as_deref().is_some_and(|name| !matches!(name, "noauth" | "default")) {
        return Err(of_image(
            "image_server_auth_strategy is not supported; put user and password into the URL",
        ));
    }
    if info.image_request_authorization.as_ref().is_some_and(|header| !header.is_null()) {
        return Err(of_image(
            "image_request_authorization is not supported; put user and password into the URL",
        ));
    }
    let [url] = info.urls.as_slice() else { return Err(of_image("urls must have one URL")) };
    let url: ImageUrl = url.parse().map_err(|problem: String| of_image(&format!("urls: {problem}")))?;
    let format = match info.disk_format.as_deref() {
        None => None,
        Some("raw" | "gpt") => Some(Format::Raw),
        Some("qcow2") => Some(Format::Qcow2),
        Some(other) => {
            return Err(of_image(&format!(
                "disk_format {other:?} is not supported; there are raw and qcow2"
            )));
        }
    };
    let allow_md5 = info.anneal.allow_md5;
    let checksum = ChecksumSource::of(
        info.os_hash_algo.as_deref(),
        info.os_hash_value.as_deref(),
        info.checksum.as_deref(),
        allow_md5,
    );
    let checksum = checksum.map_err(|problem| of_image(&format!("checksum: {problem}")))?;
    let hosts = hosts(&info.anneal)?;
    let proxies = proxies(info).map_err(|problem| of_image(&problem))?;
    let sent =
        Sent { ca: info.anneal.ca.as_deref(), pins: &info.anneal.pins, pin: info.anneal.pin.as_deref() };
    let mut trust = trust(sent, &url, mirrors).map_err(|problem| of_image(&problem))?;
    let (copies, limits) = match &info.anneal_copies {
        None => (Vec::new(), Limits::default()),
        Some(copies) => (
            with_copies(copies, &mut trust)
                .map_err(|problem| of_image(&format!("anneal_copies: {problem}")))?,
            Limits { patience: PATIENCE, ..Limits::default() },
        ),
    };
    let headers = info.anneal.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let headers =
        RequestHeaders::of(headers).map_err(|problem| of_image(&format!("anneal.headers: {problem}")))?;
    let checkpoint = context.checkpoint().and_then(|saved| Checkpoint::deserialize(saved).ok());
    let source = Source { url, copies, trust, hosts, proxies, limits, headers };
    let checkpoint_every = CHECKPOINT_BYTES;
    // The disk is not chosen yet.
    let disk = None;
    Ok(Request { source, checksum, allow_md5, format, configdrive: None, disk, checkpoint_every, checkpoint })
}

/// The URLs of the copies; each may have its certificate.
fn with_copies(copies: &[ImageCopy], trust: &mut Trust) -> Result<Vec<ImageUrl>, String> {
    let one = |copy: &ImageCopy| -> Result<ImageUrl, String> {
        let url: ImageUrl = copy.url.parse()?;
        if let Some(text) = &copy.pin {
            trust.pins.add(url.host(), pin(text)?);
        }
        Ok(url)
    };
    copies.iter().map(one).collect()
}

fn hosts(addition: &Addition) -> Result<Hosts, StepError> {
    let of = |member: &str, problem: String| wrong(IMAGE_INFO, format!("anneal.{member}: {problem}"));
    let rules = addition.hosts.iter().map(|text| Host::parse(text).map_err(|why| of("hosts", why)));
    let never = addition
        .never_hosts
        .iter()
        .map(|text| text.parse().map_err(|_| of("never_hosts", format!("{text:?} is no network"))));
    Ok(Hosts { rules: rules.collect::<Result<_, _>>()?, never: never.collect::<Result<_, _>>()? })
}

/// As ironic-python-agent takes them: a URL by scheme, and the hosts that are asked without.
fn proxies(info: &ImageInfo) -> Result<Proxies, String> {
    let mut proxies = Proxies::default();
    for (scheme, url) in info.proxies.iter().flatten().filter(|(_, url)| !url.is_null()) {
        let proxy = match scheme.as_str() {
            "http" => &mut proxies.http,
            "https" => &mut proxies.https,
            other => return Err(format!("proxies: there are http and https, not {other}")),
        };
        let url = url.as_str().ok_or_else(|| format!("proxies.{scheme}: it is not text"))?;
        *proxy = Some(url.parse::<Proxy>().map_err(|why| format!("proxies.{scheme}: {why}"))?);
    }
    if let Some(hosts) = &info.no_proxy {
        proxies.none_for = hosts.parse::<NoProxy>().map_err(|why| format!("no_proxy: {why}"))?;
    }
    Ok(proxies)
}

/// The configuration drive, from where it is.
fn drive(value: Option<&Value>, request: &Request, watch: &StepWatch) -> Result<Option<Vec<u8>>, StepError> {
    let of_drive = |problem: String| wrong(CONFIGDRIVE, problem);
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) if text.is_empty() => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(of_drive("it is not text".to_owned())),
    };
    let bytes = if text.contains("://") {
        let source = request.source.of_another_file(text.parse().map_err(of_drive)?);
        let most = usize::try_from(configdrive::LARGEST_FILE).unwrap_or(usize::MAX);
        let fetched = image_writer::fetch(&source, most, watch);
        fetched.and_then(|bytes| configdrive::from_file(bytes).map_err(ImageError::ConfigDrive))
    } else {
        configdrive::decode(text).map_err(ImageError::ConfigDrive)
    };
    bytes.map(Some).map_err(|error| match error {
        ImageError::Cancelled => StepError::Cancelled { report: Value::Null },
        error => failed(format!("nothing was written to any disk: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(change: impl FnOnce(&mut Value)) -> Result<Request, StepError> {
        // As a real Ironic sends it (transcripts/deploy_direct.jsonl, request 16).
        let mut value = json!({
            "id": "cloud.raw", "urls": ["http://10.77.0.1:8080/cloud.raw"], "disk_format": "raw",
            "container_format": null, "stream_raw_images": true, "os_hash_algo": "sha256",
            "os_hash_value": "d3abad4080be9a88d34baa01be43afc84f4720c2c262cea679e6da8c4673f0c3",
            "node_uuid": "b20835f7-c1c5-46d6-adc4-b432360e4181", "configdrive": "H4sI",
        });
        change(&mut value);
        let info = ImageInfo::deserialize(&value).expect("an image_info");
        request(&info, &MirrorTrust::None, &StepContext::new())
    }

    #[test]
    fn what_a_real_ironic_sends_is_understood() {
        let request = info(|_| ()).expect("a request");
        assert_eq!(request.source.url.to_string(), "http://10.77.0.1:8080/cloud.raw");
        assert_eq!((request.format, request.source.trust), (Some(Format::Raw), Trust::default()));
    }

    #[test]
    fn proxies_are_taken_as_ironic_sends_them() {
        let source = info(|all| {
            all["proxies"] = json!({"http": "http://u:secret@a:3128", "https": "http://b:3128"});
            all["no_proxy"] = json!("own.example");
        });
        let proxies = source.expect("a request").source.proxies;
        assert!(proxies.http.is_some() && proxies.https == "http://b:3128".parse().ok());
        assert_eq!(proxies.none_for, "own.example".parse().expect("hosts"));
        assert!(!format!("{proxies:?}").contains("secret"));
        assert_eq!(info(|all| all["proxies"] = json!({})).expect("none").source.proxies, Proxies::default());
    }

    /// As the conductor's test of an image of the controller has it.
    #[test]
    fn copies_at_other_controllers_are_awaited_and_known_by_their_certificates() {
        let pin = format!("sha256:{}", "aa".repeat(32));
        let copies = json!([{"url": "https://192.0.2.8:6385/v1/anneal/images/x", "pin": pin}]);
        let source = info(|all| all["anneal_copies"] = copies).expect("a request").source;
        assert_eq!(source.copies, ["https://192.0.2.8:6385/v1/anneal/images/x".parse().expect("a URL")]);
        assert!(source.trust.pins.get("192.0.2.8").is_some());
        assert_eq!(source.limits.patience, PATIENCE);
        let source = info(|_| ()).expect("a request").source;
        assert_eq!((source.copies.len(), source.limits.patience), (0, Duration::ZERO), "a mirror");
    }

    /// As the conductor's test of a rebuild has it.
    #[test]
    fn the_disk_of_the_deployment_before_is_read_as_our_controller_sends_it() {
        let parsed = |addition: Value| serde_json::from_value::<ImageInfo>(json!({ "anneal": addition }));
        let disk = parsed(json!({"disk": {"serial": "S1"}})).expect("a disk").anneal.disk;
        assert_eq!(disk.expect("a disk").to_string(), "serial S1, WWN none");
        // A member that is not known could have named another disk.
        assert!(parsed(json!({"disk": {"serial": "S1", "uuid": "x"}})).is_err());
        assert!(parsed(json!({})).expect("nothing").anneal.disk.is_none());
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_helps() {
        for (member, value, expected) in [
            ("urls", json!([]), "one URL"),
            ("urls", json!(["ftp://u:secret@h/x"]), "only http"),
            ("disk_format", json!("vmdk"), "vmdk"),
            ("image_type", json!("partition"), "whole-disk image"),
            ("kernel", json!("k"), "whole-disk image"),
            (
                "proxies",
                json!({"http": "https://u:secret@p"}),
                "proxies.http: a proxy is spoken to in plain HTTP",
            ),
            ("proxies", json!({"ftp": "http://p"}), "proxies: there are http and https, not ftp"),
            ("no_proxy", json!("a/b"), "no_proxy: "),
            ("image_server_auth_strategy", json!("http_basic"), "into the URL"),
            ("image_request_authorization", json!("c2VjcmV0"), "into the URL"),
            ("os_hash_algo", json!("md5"), "no md5"),
            ("os_hash_value", json!(null), "os_hash_value"),
            ("anneal", json!({"pin": "secret"}), "anneal.pin"),
            ("anneal", json!({"pins": {"a": ["secret"]}}), "anneal.pins: a: it is no fingerprint"),
            ("anneal", json!({"hosts": ["*"]}), "anneal.hosts"),
            ("anneal", json!({"never_hosts": ["a"]}), "anneal.never_hosts"),
            ("anneal", json!({"headers": {"x-token": "a\nsecret"}}), "anneal.headers"),
            ("anneal_copies", json!([{"url": "ftp://u:secret@h/x"}]), "anneal_copies: ftp:// is not fetched"),
            (
                "anneal_copies",
                json!([{"url": "https://h/x", "pin": "secret"}]),
                "anneal_copies: it is no fingerprint",
            ),
        ] {
            let error = info(|all| all[member] = value).expect_err(expected).to_string();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
    }
}
