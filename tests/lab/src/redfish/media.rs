//! Virtual media (DSP0268, `VirtualMedia` v1.6). The BMC reads the image itself, from its own address, by HEAD and ranges, as
//! real ones do, and shows it to the machine as a CD drive or as a USB stick. What real BMCs do differently from each other is data.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path as UrlPath, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use reqwest::Client;
use serde_json::{Value, json};

use super::{Bmc, collection, error};

/// Bytes that are asked for at a time.
const RANGE: u64 = 1 << 20;
/// Collection of a system's own drives.
const BELOW_SYSTEM: &str = "/redfish/v1/Systems/1/VirtualMedia";
const FETCH: Duration = Duration::from_secs(10);

/// What BMCs do differently.
#[derive(Debug, Clone)]
pub struct MediaQuirks {
    /// The collection is below the manager, and not below the system.
    pub below_manager: bool,
    /// There is an empty collection below the system, too.
    pub empty_below_system: bool,
    /// The drives in their order.
    pub drives: Vec<DriveQuirks>,
    /// Parameters of the insertion that are refused.
    pub refuses: &'static [&'static str],
    /// Parameters of the insertion that are demanded.
    pub demands: &'static [&'static str],
    /// Parameters that an ActionInfo names.
    pub action_info: &'static [&'static str],
    /// Media are changed by PATCH: there are no actions.
    pub by_patch: bool,
    /// A weak ETag is given, and a PATCH needs it as a strong one.
    pub etags: bool,
    /// How often a drive still shows a medium that was ejected.
    pub lingers: u32,
    /// The URL of a medium is not shown.
    pub hides_url: bool,
    /// What is shown in the place of the URL of a medium that was inserted.
    pub shows: Option<fn(&str) -> String>,
    /// Boot sources for CDs that are offered; the last boots virtual media, the others a drive in the chassis.
    pub sources: &'static [&'static str],
    /// An image that cannot be read is accepted all the same.
    pub reads_late: bool,
    /// A URL of UEFI HTTP boot is accepted and not kept.
    pub forgets_urls: bool,
    /// UEFI HTTP boot is offered without a property for its URL, as where that is a setting of the BIOS.
    pub lacks_url: bool,
    /// Statuses that reads of the BIOS settings in force, and of those for the next boot, are answered with in the place of them.
    pub bios_refused: [Option<StatusCode>; 2],
}

/// A virtual drive.
#[derive(Debug, Clone)]
pub struct DriveQuirks {
    /// Its name.
    pub id: &'static str,
    /// `MediaTypes`.
    pub types: &'static [&'static str],
    /// It takes no URL: an insertion is answered with 405.
    pub takes_no_url: bool,
    /// A foreign medium is in it.
    pub foreign: Option<&'static str>,
}

impl DriveQuirks {
    /// An empty CD drive.
    #[must_use]
    pub fn cd(id: &'static str) -> Self {
        Self { id, types: &["CD", "DVD"], takes_no_url: false, foreign: None }
    }

    /// An empty drive that shows its medium as a USB stick.
    #[must_use]
    pub fn stick(id: &'static str) -> Self {
        Self { types: &["USBStick"], ..Self::cd(id) }
    }

    fn is_stick(&self) -> bool {
        self.types == ["USBStick"]
    }
}

impl Default for MediaQuirks {
    fn default() -> Self {
        Self {
            below_manager: false,
            empty_below_system: false,
            drives: vec![DriveQuirks::cd("1")],
            refuses: &[],
            demands: &[],
            action_info: &[],
            by_patch: false,
            etags: false,
            lingers: 0,
            hides_url: false,
            shows: None,
            sources: &["Cd"],
            reads_late: false,
            forgets_urls: false,
            lacks_url: false,
            bios_refused: [None, None],
        }
    }
}

impl MediaQuirks {
    /// The boot source that boots virtual media.
    pub(super) fn boots_by(&self) -> Option<&'static str> {
        self.sources.last().copied()
    }

    pub(super) fn collection(&self) -> &'static str {
        if self.below_manager { "/redfish/v1/Managers/1/VirtualMedia" } else { BELOW_SYSTEM }
    }

    /// The collection that the system links to.
    pub(super) fn collection_of_system(&self) -> Option<&'static str> {
        (!self.below_manager || self.empty_below_system).then_some(BELOW_SYSTEM)
    }
}

/// What is in the drives.
#[derive(Debug)]
pub(super) struct Media {
    pub(super) quirks: MediaQuirks,
    /// The BMC's own address.
    address: IpAddr,
    drives: Mutex<BTreeMap<&'static str, Inside>>,
}

#[derive(Debug, Default, Clone)]
struct Inside {
    image: Option<String>,
    /// So many reads still show the image.
    lingers: u32,
}

impl Media {
    pub(super) fn new(quirks: MediaQuirks, address: IpAddr) -> Self {
        let inside = |drive: &DriveQuirks| Inside { image: drive.foreign.map(str::to_owned), lingers: 0 };
        let drives = quirks.drives.iter().map(|drive| (drive.id, inside(drive))).collect();
        Self { quirks, address, drives: Mutex::new(drives) }
    }

    fn drive(&self, id: &str) -> Option<&DriveQuirks> {
        self.quirks.drives.iter().find(|drive| drive.id == id)
    }

    fn with<T>(&self, id: &'static str, work: impl FnOnce(&mut Inside) -> T) -> T {
        let mut drives = self.drives.lock().unwrap_or_else(PoisonError::into_inner);
        work(drives.entry(id).or_default())
    }

    /// URLs of the media that are in, by drive.
    pub(super) fn inserted(&self) -> BTreeMap<String, String> {
        let drives = self.drives.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = |(id, inside): (&&str, &Inside)| Some(((*id).to_owned(), inside.image.clone()?));
        drives.iter().filter_map(|(id, drive)| inside((id, drive)).filter(|_| drive.lingers == 0)).collect()
    }

    fn document(&self, drive: &DriveQuirks) -> Value {
        let path = format!("{}/{}", self.quirks.collection(), drive.id);
        let inside = self.with(drive.id, |inside| {
            let shown = inside.clone();
            if inside.lingers > 0 {
                inside.lingers -= 1;
                if inside.lingers == 0 {
                    inside.image = None;
                }
            }
            shown
        });
        let url = inside.image.as_deref().filter(|_| !self.quirks.hides_url);
        let altered = self.quirks.shows.filter(|_| inside.image.as_deref() != drive.foreign);
        let url = url.map(|url| altered.map_or_else(|| url.to_owned(), |shown| shown(url)));
        let mut document = json!({
            "@odata.type": "#VirtualMedia.v1_6_0.VirtualMedia",
            "@odata.id": path,
            "Id": drive.id,
            "Name": "Virtual drive",
            "MediaTypes": drive.types,
            "Image": url,
            "Inserted": inside.image.is_some(),
            "WriteProtected": true,
        });
        if !self.quirks.by_patch {
            let action = |name: &str| format!("{path}/Actions/VirtualMedia.{name}");
            document["Actions"] = json!({
                "#VirtualMedia.InsertMedia": {"target": action("InsertMedia")},
                "#VirtualMedia.EjectMedia": {"target": action("EjectMedia")},
            });
            if !self.quirks.action_info.is_empty() {
                document["Actions"]["#VirtualMedia.InsertMedia"]["@Redfish.ActionInfo"] =
                    json!(format!("{path}/InsertMediaActionInfo"));
            }
        }
        document
    }

    /// What is wrong with the parameters of an insertion, if anything is.
    fn refused(&self, body: &Value) -> Option<Response> {
        if let Some(name) = self.quirks.refuses.iter().find(|name| body.get(**name).is_some()) {
            let message = format!("the parameter {name} is not supported by this action");
            return Some(error(StatusCode::BAD_REQUEST, "ActionParameterUnknown", &message));
        }
        let lacks = |name: &&&str| body.get(**name).is_none();
        let missing: Vec<&str> = self.quirks.demands.iter().filter(lacks).copied().collect();
        if !missing.is_empty() {
            let message = format!("the action needs parameters that are missing: {}", missing.join(", "));
            return Some(error(StatusCode::BAD_REQUEST, "GeneralError", &message));
        }
        None
    }
}

/// `GET …/VirtualMedia`.
pub(super) async fn list(State(bmc): State<Bmc>) -> Json<Value> {
    let path = bmc.media.quirks.collection();
    let drives: Vec<String> =
        bmc.media.quirks.drives.iter().map(|drive| format!("{path}/{}", drive.id)).collect();
    collection(path, "VirtualMedia", &drives.iter().map(String::as_str).collect::<Vec<_>>())
}

/// `GET …/VirtualMedia` of a system whose drives are all below the manager.
pub(super) async fn list_none() -> Json<Value> {
    collection(BELOW_SYSTEM, "VirtualMedia", &[])
}

fn no_drive() -> Response {
    error(StatusCode::NOT_FOUND, "ResourceMissingAtURI", "no such virtual drive")
}

/// `GET …/VirtualMedia/{id}`.
pub(super) async fn show(State(bmc): State<Bmc>, UrlPath(id): UrlPath<String>) -> Response {
    let Some(drive) = bmc.media.drive(&id) else { return no_drive() };
    let document = Json(bmc.media.document(drive));
    if bmc.media.quirks.etags {
        return ([(header::ETAG, "W/\"7\"")], document).into_response();
    }
    document.into_response()
}

/// `GET …/VirtualMedia/{id}/InsertMediaActionInfo`.
pub(super) async fn action_info(State(bmc): State<Bmc>) -> Json<Value> {
    let parameter = |name: &&str| match *name {
        "TransferProtocolType" => json!({"Name": name, "AllowableValues": ["CIFS", "HTTP", "HTTPS"]}),
        name => json!({"Name": name, "Required": name == "Image"}),
    };
    let parameters: Vec<Value> = bmc.media.quirks.action_info.iter().map(parameter).collect();
    Json(
        json!({"@odata.type": "#ActionInfo.v1_1_0.ActionInfo", "Id": "1", "Name": "x", "Parameters": parameters}),
    )
}

/// `POST …/VirtualMedia.InsertMedia`.
pub(super) async fn insert(State(bmc): State<Bmc>, UrlPath(id): UrlPath<String>, body: Bytes) -> Response {
    if bmc.media.quirks.by_patch {
        return no_drive();
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    put_in(&bmc, &id, &body).await
}

/// `POST …/VirtualMedia.EjectMedia`. Some BMCs want a body, and be it an empty object.
pub(super) async fn eject(State(bmc): State<Bmc>, UrlPath(id): UrlPath<String>, body: Bytes) -> Response {
    if bmc.media.quirks.by_patch {
        return no_drive();
    }
    if serde_json::from_slice::<Value>(&body).is_err() {
        return error(StatusCode::BAD_REQUEST, "MalformedJSON", "the body is no JSON");
    }
    take_out(&bmc, &id).await
}

/// `PATCH …/VirtualMedia/{id}`.
pub(super) async fn patch(
    State(bmc): State<Bmc>,
    UrlPath(id): UrlPath<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !bmc.media.quirks.by_patch {
        return error(StatusCode::METHOD_NOT_ALLOWED, "ActionNotSupported", "media are changed by actions");
    }
    let shown = headers.get(header::IF_MATCH).and_then(|tag| tag.to_str().ok());
    if bmc.media.quirks.etags && shown != Some("\"7\"") {
        return error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed", "If-Match does not match");
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match body.get("Image") {
        Some(Value::Null) => take_out(&bmc, &id).await,
        _ => put_in(&bmc, &id, &body).await,
    }
}

async fn put_in(bmc: &Bmc, id: &str, body: &Value) -> Response {
    let Some(drive) = bmc.media.drive(id) else { return no_drive() };
    let Some(url) = body["Image"].as_str() else {
        return error(StatusCode::BAD_REQUEST, "ActionParameterMissing", "Image is missing");
    };
    if drive.takes_no_url {
        return error(StatusCode::METHOD_NOT_ALLOWED, "ActionNotSupported", "this drive takes no URL");
    }
    if let Some(refused) = bmc.media.refused(body) {
        return refused;
    }
    if bmc.media.with(drive.id, |inside| inside.image.is_some()) {
        return error(StatusCode::CONFLICT, "ResourceInUse", "a medium is inserted");
    }
    let name = if drive.is_stick() { "virtual-stick.img" } else { "virtual-media.iso" };
    let file = bmc.machine.spec().dir.join(name);
    match fetch(url, bmc.media.address, &file).await {
        Ok(()) => {
            if let Err(cause) = show_to_machine(bmc, drive, Some(file)).await {
                return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &format!("{cause:#}"));
            }
        }
        Err(cause) if bmc.media.quirks.reads_late => tracing::info!("BMC: {cause:#}"),
        Err(cause) => {
            let message = format!("the image cannot be read: {cause:#}");
            return error(StatusCode::INTERNAL_SERVER_ERROR, "GeneralError", &message);
        }
    }
    bmc.media.with(drive.id, |inside| *inside = Inside { image: Some(url.to_owned()), lingers: 0 });
    StatusCode::NO_CONTENT.into_response()
}

async fn show_to_machine(bmc: &Bmc, drive: &DriveQuirks, image: Option<PathBuf>) -> Result<()> {
    match drive.is_stick() {
        true => bmc.machine.insert_stick(image).await,
        false => bmc.machine.insert_cd(image).await,
    }
}

async fn take_out(bmc: &Bmc, id: &str) -> Response {
    let Some(drive) = bmc.media.drive(id) else { return no_drive() };
    let was_in = bmc.media.with(drive.id, |inside| inside.image.is_some() && inside.lingers == 0);
    if !was_in {
        return error(StatusCode::CONFLICT, "GeneralError", "nothing is inserted");
    }
    if let Err(cause) = show_to_machine(bmc, drive, None).await {
        return error(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", &format!("{cause:#}"));
    }
    let lingers = bmc.media.quirks.lingers;
    bmc.media.with(drive.id, |inside| match lingers {
        0 => *inside = Inside::default(),
        reads => inside.lingers = reads,
    });
    StatusCode::NO_CONTENT.into_response()
}

/// Reads the image from this address of ours into a file: its length by HEAD, then ranges.
pub async fn fetch(url: &str, from: IpAddr, file: &Path) -> Result<()> {
    // The workspace's reqwest has TLS without a provider chosen; a second choice is refused and does not matter.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().local_address(from).timeout(FETCH).build()?;
    let head = client.head(url).send().await?.error_for_status()?;
    let length =
        head.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let length: u64 = length.context("a HEAD without Content-Length")?;
    let part = part_of(file);
    let mut out = std::fs::File::create(&part).with_context(|| format!("cannot write {}", part.display()))?;
    let mut at = 0;
    while at < length {
        let last = (at + RANGE).min(length) - 1;
        let answer = client.get(url).header(header::RANGE, format!("bytes={at}-{last}")).send().await?;
        ensure!(
            answer.status() == StatusCode::PARTIAL_CONTENT,
            "a range was answered with {}",
            answer.status()
        );
        let bytes = answer.bytes().await?;
        if bytes.len() as u64 != last + 1 - at {
            bail!("{} bytes in the place of {}", bytes.len(), last + 1 - at);
        }
        out.write_all(&bytes)?;
        at = last + 1;
    }
    std::fs::rename(&part, file).with_context(|| format!("cannot rename {}", part.display()))
}

fn part_of(file: &Path) -> PathBuf {
    file.with_extension("part")
}
