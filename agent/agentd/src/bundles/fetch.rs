//! From the controller into memory: an unnamed file that no process can change once it is sealed.

use crate::http::{Client, HttpError};
use crate::lookup::{Controller, LookupResult};
use crate::random;
use agent_protocol::lookup::BundleOffer;
use agent_protocol::{NODE_HEADER, TOKEN_HEADER};
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};

/// Tries, with a pause before each but the first.
const TRIES: usize = 3;

/// The file that was offered; at most as long as it was said to be.
pub async fn fetch(
    client: &Client,
    controller: &Controller,
    found: &LookupResult,
    offer: &BundleOffer,
) -> Result<File, String> {
    let mut failures = 0;
    loop {
        match once(client, controller, found, offer).await {
            Ok(file) => return seal(file).map_err(|error| format!("memory: {error}")),
            // What the controller refuses it refuses again.
            Err(error @ HttpError::Refused { .. }) => return Err(error.to_string()),
            Err(error) => {
                failures += 1;
                tracing::warn!(digest = offer.digest, %error, "bundle not fetched (try {failures} of {TRIES})");
                if failures == TRIES {
                    return Err(error.to_string());
                }
                tokio::time::sleep(random::seconds(0.5..2.0)).await;
            }
        }
    }
}

async fn once(
    client: &Client,
    controller: &Controller,
    found: &LookupResult,
    offer: &BundleOffer,
) -> Result<File, HttpError> {
    let memory = |error: io::Error| HttpError::Http {
        url: controller.url.to_string(),
        problem: format!("memory for a bundle: {error}"),
    };
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
    let file = memfd_create(c"bundle", flags).map_err(|error| memory(error.into()))?;
    let mut file = File::from(file);
    let mut left = offer.size;
    let take = |bytes: &[u8]| {
        left = left.checked_sub(bytes.len() as u64).ok_or("it is longer than was said")?;
        file.write_all(bytes).map_err(|error| format!("memory: {error}"))
    };
    let path = format!("/v1/anneal/bundles/{}/file", offer.digest);
    let headers = [(NODE_HEADER, found.node_uuid.as_str()), (TOKEN_HEADER, found.token.expose())];
    client.download(&controller.url, &path, &headers, take).await?;
    match left {
        0 => Ok(file),
        left => Err(HttpError::Http {
            url: controller.url.to_string(),
            problem: format!("the bundle ends {left} bytes before its end"),
        }),
    }
}

/// From now on the file is what it is.
fn seal(file: File) -> io::Result<File> {
    let all =
        SealFlag::F_SEAL_WRITE | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_SEAL;
    fcntl(&file, FcntlArg::F_ADD_SEALS(all))?;
    Ok(file)
}
