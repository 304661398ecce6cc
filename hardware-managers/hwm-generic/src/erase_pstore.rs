//! Removes what kernels of the node's users have left of their crashes: parts of their logs, where a reboot does not reach them.

use boot_entries::Efivars;
use hwm_sdk::{StepError, StepOutcome};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Runs work while the firmware's variables can be written. The error says why they cannot be; the work has not run then.
pub type EfiVariableWriter = fn(&mut dyn FnMut()) -> Result<(), String>;

/// Names in an error; the others are counted.
const NAMED: usize = 3;

/// Where the kernel shows what its own backend has, for example ACPI's error record table (Documentation/ABI/testing/pstore).
fn kernels(sys: &Path) -> PathBuf {
    sys.join("fs/pstore")
}

/// Whether this kernel has a place for such records, or the firmware has variables.
pub(crate) fn is_offered(sys: &Path) -> bool {
    kernels(sys).is_dir() || Efivars::below(sys).directory().is_dir()
}

/// Remove them all, and look whether they are gone. Those in the firmware's variables are removed there: the module that would
/// show them in pstore would also write new ones.
///
/// # Errors
/// A record stays, or the places cannot be read.
pub(crate) fn run(sys: &Path, with_writable: EfiVariableWriter) -> Result<StepOutcome, StepError> {
    let failed = |reason: String| StepError::Failed { reason, report: Value::Null };
    let unread = |error: io::Error| failed(format!("the records of crashes cannot be listed: {error}"));
    let (directory, variables) = (kernels(sys), Efivars::below(sys));
    let found = Records::listed(&directory, &variables).map_err(unread)?;
    let mut refusals = Vec::new();
    for name in &found.kernels {
        if let Err(error) = std::fs::remove_file(directory.join(name)) {
            refusals.push(error.to_string());
        }
    }
    if !found.variables.is_empty() {
        let mut remove = || {
            let removed = found.variables.iter().map(|file| variables.remove_crash_record(file));
            refusals.extend(removed.filter_map(Result::err).map(|error| error.to_string()));
        };
        if let Err(refusal) = with_writable(&mut remove) {
            refusals.push(refusal);
        }
    }
    let left = Records::listed(&directory, &variables).map_err(unread)?;
    if left.is_empty() {
        let removed = json!({"pstore": found.kernels.len(), "firmware_variables": found.variables.len()});
        return Ok(StepOutcome::Done(json!({ "removed": removed })));
    }
    Err(failed(format!("records of crashes stay on the node: {}", left.named(&refusals))))
}

/// Names of files.
struct Records {
    kernels: Vec<String>,
    variables: Vec<String>,
}

impl Records {
    fn listed(directory: &Path, variables: &Efivars) -> io::Result<Self> {
        let files = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            files => Some(files?),
        };
        let names =
            files.into_iter().flatten().map(|file| Ok(file?.file_name().to_string_lossy().into_owned()));
        let mut kernels: Vec<String> = names.collect::<io::Result<_>>()?;
        kernels.sort();
        Ok(Self { kernels, variables: variables.crash_records()? })
    }

    fn is_empty(&self) -> bool {
        self.kernels.is_empty() && self.variables.is_empty()
    }

    /// The first of them, how many more there are, and why the first was not removed.
    fn named(&self, refusals: &[String]) -> String {
        let all: Vec<&str> = self.kernels.iter().chain(&self.variables).map(String::as_str).collect();
        let more = match all.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let names = all[..all.len().min(NAMED)].join(", ");
        let why = refusals.first().map_or("they came back", String::as_str);
        format!("{names}{more} ({why})")
    }
}
