//! Makes a disk's loader the first boot entry of the firmware.

use crate::efivars::{Efivars, entry_name};
use crate::load_option::LoadOption;
use crate::plan::{NoNumber, Plan, Removal, plan};
use std::collections::BTreeSet;
use std::io;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `Boot0001`: our entry.
    pub entry: String,
    /// Its label.
    pub label: String,
    /// The firmware did not have it.
    pub added: bool,
    /// Entries that are gone.
    pub removed: Vec<Removal>,
    /// `0001`, in the order they are tried.
    pub order: Vec<String>,
}

/// Why the firmware does not start the loader first. The order of its entries is what it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The variables.
    #[error("the firmware's boot entries cannot be read: {0}")]
    Read(io::Error),
    /// No number.
    #[error(transparent)]
    Number(#[from] NoNumber),
    /// No path of an entry has so many bytes.
    #[error("the boot entry is too long")]
    Long,
    /// One that had to go stays.
    #[error("the firmware keeps the boot entry {number:04X} ({label:?}): {source}")]
    Kept {
        /// Its number.
        number: u16,
        /// Its label.
        label: String,
        /// Why.
        source: io::Error,
    },
    /// There is no room for one more.
    #[error(
        "the firmware's NVRAM is full: it has {entries} boot entries and no room for {name}; remove some in the \
         firmware's menu. {removed} were removed, the boot order was not changed"
    )]
    Full {
        /// What did not fit.
        name: String,
        /// How many entries there are.
        entries: usize,
        /// How many were removed before.
        removed: usize,
    },
    /// It does not take a variable.
    #[error("the firmware does not take {name}: {source}")]
    Refused {
        /// The variable.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// It says that it has taken it, and has not.
    #[error("the firmware does not return the {0} that it was given")]
    Lost(String),
}

/// Makes `wanted` the first entry. `partitions` are those of all disks of the machine, where that is known.
///
/// # Errors
/// [`InstallError`]
pub fn install(
    variables: &Efivars,
    wanted: &LoadOption,
    partitions: Option<&BTreeSet<[u8; 16]>>,
) -> Result<Report, InstallError> {
    let firmware = variables.firmware().map_err(InstallError::Read)?;
    let value = wanted.bytes().ok_or(InstallError::Long)?;
    let plan = plan(&firmware, wanted, &value, partitions)?;
    // What goes makes room.
    for Removal { number, label, .. } in &plan.remove {
        let kept = |source| InstallError::Kept { number: *number, label: label.clone(), source };
        variables.remove(&entry_name(*number)).map_err(kept)?;
    }
    if plan.clear_next {
        let name = "BootNext".to_owned();
        variables.remove(&name).map_err(|source| InstallError::Refused { name, source })?;
    }
    let left = firmware.entries.len() - plan.remove.len();
    let name = entry_name(plan.number);
    if let Some(value) = &plan.add {
        put(variables, &name, value, left, &plan)?;
    }
    if let Some(order) = &plan.order {
        let value: Vec<u8> = order.iter().flat_map(|number| number.to_le_bytes()).collect();
        let written = put(variables, "BootOrder", &value, left, &plan);
        if written.is_err() && plan.add.is_some() {
            // Nothing would start it.
            let _ = variables.remove(&name);
        }
        written?;
    }
    let order = plan.order.as_ref().unwrap_or(&firmware.order);
    Ok(Report {
        entry: name,
        label: wanted.description.clone(),
        added: plan.add.is_some(),
        removed: plan.remove,
        order: order.iter().map(|number| format!("{number:04X}")).collect(),
    })
}

/// Writes a variable and reads it back.
fn put(
    variables: &Efivars,
    name: &str,
    value: &[u8],
    entries: usize,
    plan: &Plan,
) -> Result<(), InstallError> {
    match variables.write(name, value) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            let (name, removed) = (name.to_owned(), plan.remove.len());
            return Err(InstallError::Full { name, entries, removed });
        }
        Err(source) => return Err(InstallError::Refused { name: name.to_owned(), source }),
    }
    let read = variables.read(name).map_err(InstallError::Read)?;
    if read.as_deref() == Some(value) { Ok(()) } else { Err(InstallError::Lost(name.to_owned())) }
}
