//! The device.

use anyhow::{Context, Result, bail};
use block::{Device, Filter, Roots};
use std::path::Path;

/// Opens it as the agent does.
///
/// # Errors
/// When it may not be written.
pub fn open(node: &Path) -> Result<Device> {
    let roots = Roots::default();
    let found = block::list(&roots, &Filter::Only(vec![node.to_owned()]))?;
    let probe = block::probe(found.first().with_context(|| format!("no {}", node.display()))?)?;
    if let Some(refusal) = block::judge(&probe).first() {
        bail!("{refusal}");
    }
    Ok(Device::open(&roots, &probe)?)
}
