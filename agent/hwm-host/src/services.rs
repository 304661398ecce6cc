//! What a manager may ask of the agent: bytes of a disk, a file by its digest.

use agent_protocol::inventory::Disk;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hwm_sdk::protocol::{
    Artifact, Claim, ClaimKind, Code, DeviceData, Fetch, FetchParams, Message, Method, READ_MAX, ReadDevice,
    ReadDeviceParams, RpcError, decode,
};
use ring::digest::{Context, SHA256};
use serde_json::value::RawValue;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where fetched files are for the manager.
const FETCHED: &str = "/fetched";
/// Most that one manager may have fetched, in bytes.
const FETCHED_MAX: u64 = 1 << 30;

/// The services of one manager.
#[derive(Debug)]
pub(super) struct Services {
    pub(super) manager: String,
    /// Disks that its manifest grants.
    pub(super) granted: Vec<Disk>,
    /// What it claimed in `detect`; none before.
    pub(super) claims: Arc<Mutex<Vec<Claim>>>,
    /// Files by their SHA-256.
    pub(super) artifacts: Option<PathBuf>,
    /// The directory of the host that is [`FETCHED`] for the manager.
    pub(super) fetched: Option<PathBuf>,
}

impl Services {
    /// The answer to a request.
    pub(super) fn answer(&self, id: u64, method: &str, params: &RawValue) -> Message {
        let answer = match method {
            ReadDevice::NAME => decode(method, params)
                .and_then(|params| self.read_device(&params))
                .map(|data| Message::answer::<ReadDevice>(id, &data)),
            Fetch::NAME => decode(method, params)
                .and_then(|params| self.fetch(&params))
                .map(|artifact| Message::answer::<Fetch>(id, &artifact)),
            _ => Err(RpcError::new(Code::Method, format!("no such method: {method}"))),
        };
        answer.unwrap_or_else(|error| Message::Error { id: Some(id), error })
    }

    fn read_device(&self, params: &ReadDeviceParams) -> Result<DeviceData, RpcError> {
        let refused = |what: String| RpcError::new(Code::Refused, what);
        let Some(name) = params.claim.id.as_deref().filter(|_| params.claim.kind == ClaimKind::Block) else {
            return Err(refused("only a block device can be read, by its id".to_owned()));
        };
        let disk = self.granted.iter().find(|disk| disk.name == name);
        let disk = disk.ok_or_else(|| refused(format!("{name} is not granted to {}", self.manager)))?;
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if !claims.iter().any(|claim| claim.covers_disk(disk)) {
            return Err(refused(format!("{name} is not claimed by {}", self.manager)));
        }
        drop(claims);
        if !(1..=READ_MAX).contains(&params.length) {
            return Err(RpcError::new(Code::Params, format!("length must be 1 to {READ_MAX}")));
        }
        let unavailable = |error: io::Error| RpcError::new(Code::Unavailable, format!("{name}: {error}"));
        let device = File::open(name).map_err(unavailable)?;
        let mut bytes = vec![0; usize::try_from(params.length).unwrap_or_default()];
        let mut length = 0;
        while length < bytes.len() {
            match device.read_at(&mut bytes[length..], params.offset.saturating_add(length as u64)) {
                Ok(0) => break,
                Ok(more) => length += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unavailable(error)),
            }
        }
        Ok(DeviceData { data: STANDARD.encode(&bytes[..length]) })
    }

    fn fetch(&self, params: &FetchParams) -> Result<Artifact, RpcError> {
        let digest = params.digest.strip_prefix("sha256:").filter(|digest| bundle::is_digest(digest));
        let digest = digest.ok_or_else(|| {
            RpcError::new(Code::Params, "digest must be sha256: and 64 hexadecimal digits, lower case")
        })?;
        let unavailable = |what: String| RpcError::new(Code::Unavailable, what);
        let (Some(artifacts), Some(fetched)) = (&self.artifacts, &self.fetched) else {
            return Err(unavailable(format!("there are no artifacts here, so no sha256:{}", &digest[..12])));
        };
        let (source, target) = (artifacts.join(digest), fetched.join(digest));
        let size = copy(&source, &target, digest)
            .map_err(|error| unavailable(format!("artifact sha256:{}: {error}", &digest[..12])))?;
        Ok(Artifact { path: format!("{FETCHED}/{digest}"), size })
    }
}

/// Copy a file and check what it is; nothing appears under its name that is not.
fn copy(source: &Path, target: &Path, digest: &str) -> io::Result<u64> {
    if let Ok(present) = fs::metadata(target) {
        return Ok(present.len());
    }
    let mut from = File::open(source)?;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let present: u64 =
        fs::read_dir(directory)?.map(|file| Ok(file?.metadata()?.len())).sum::<io::Result<_>>()?;
    if present.saturating_add(from.metadata()?.len()) > FETCHED_MAX {
        return Err(io::Error::other(format!("with it more than {FETCHED_MAX} bytes would be fetched")));
    }
    let partial = target.with_extension("partial");
    let mut to = File::create(&partial)?;
    let (mut sum, mut size, mut buffer) = (Context::new(&SHA256), 0, vec![0; 64 << 10]);
    loop {
        let length = from.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        sum.update(&buffer[..length]);
        io::Write::write_all(&mut to, &buffer[..length])?;
        size += length as u64;
    }
    if bundle::hex(sum.finish().as_ref()) != digest {
        fs::remove_file(&partial)?;
        return Err(io::Error::other("its content has another digest"));
    }
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o444))?;
    fs::rename(&partial, target)?;
    Ok(size)
}
