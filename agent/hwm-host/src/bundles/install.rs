//! Verify a fetched file and mount it.

use super::mount::mount;
use agent_protocol::lookup::BundleOffer;
use bundle::{Trust, Verified};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Check that the file is the offered bundle, and mount it below `directory`; returns the directory of its manager. The
/// file must be sealed, so that the verified bytes are the mounted bytes.
///
/// # Errors
/// The digest, name, version or signature is wrong, or it cannot be mounted.
pub fn install(directory: &Path, file: &File, trust: &Trust, offer: &BundleOffer) -> Result<PathBuf, String> {
    let verified = verify(file, trust, offer)?;
    mount(directory, file, &verified)
}

fn verify(mut file: &File, trust: &Trust, offer: &BundleOffer) -> Result<Verified, String> {
    let verified = bundle::verify(&mut file, trust).map_err(|error| error.to_string())?;
    if verified.digest != offer.digest {
        return Err(format!("what the controller sent has digest {}", verified.digest));
    }
    let (name, version) = (&verified.manifest.name, &verified.manifest.version);
    if (name, version) != (&offer.name, &offer.version) {
        return Err(format!("it is {name} {version}, and was offered as {} {}", offer.name, offer.version));
    }
    Ok(verified)
}
