//! Clears the TPM of what the node's users have put into it.

use block::Roots;
use hwm_sdk::{StepContext, StepError, StepOutcome};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tpm::{ClearAuthority, TpmError};

/// The firmware's operation "clear" (TCG PC Client Physical Presence Interface 1.30, table 2).
const CLEAR: &str = "5";

fn device(roots: &Roots) -> PathBuf {
    roots.dev.join("tpmrm0")
}

/// Whether there is a TPM 2.0.
pub(crate) fn is_offered(roots: &Roots) -> bool {
    device(roots).exists()
}

/// Clear it. Where only a user or the firmware may, the firmware is asked to do so when the node boots again; if it has not done so
/// by then, the step fails.
///
/// # Errors
/// The TPM is not cleared; the error says what will clear it.
pub(crate) fn run(roots: &Roots, context: &StepContext) -> Result<StepOutcome, StepError> {
    let failed = |reason: String| StepError::Failed { reason, report: Value::Null };
    let refused = |error: TpmError| failed(format!("the TPM is not cleared: {error}"));
    let opened = tpm::open(&device(roots)).map_err(|error| refused(error.into()))?;
    let mut tpm = opened.ok_or_else(|| failed("there is no TPM 2.0 to be cleared".to_owned()))?;
    let why = match tpm.clear_authority().map_err(refused)? {
        ClearAuthority::System => {
            tpm.clear().map_err(refused)?;
            return Ok(StepOutcome::Done(json!({"cleared": "TPM2_Clear"})));
        }
        ClearAuthority::Password => "a user has set its lockout password",
        ClearAuthority::Firmware => "a user has forbidden the operating system to clear it",
    };
    let firmware = Firmware::below(&roots.sys);
    let not_cleared = |what: String| format!("the TPM is not cleared: {why}; {what}");
    if context.checkpoint().is_some_and(|saved| saved.get(ASKED).is_some()) {
        let says = firmware.response();
        return Err(failed(not_cleared(format!(
            "its firmware was asked to clear it, and has not ({says}). {SETUP}"
        ))));
    }
    match firmware.ask() {
        Ok(Presence::NotRequired) => Err(StepError::NeedsReboot {
            reason: not_cleared("its firmware was asked to clear it at the next boot. Then clean the node again".to_owned()),
            checkpoint: json!({ASKED: CLEAR}),
        }),
        Ok(Presence::Required) => Err(failed(not_cleared(
            "its firmware was asked to clear it at the next boot, where it wants a key pressed at the machine. Then clean the node again"
                .to_owned(),
        ))),
        Err(error) => Err(failed(not_cleared(format!("its firmware takes no request from here ({error}). {SETUP}")))),
    }
}

/// Member of the checkpoint: what the firmware was asked for.
const ASKED: &str = "asked";

/// What is left to do.
const SETUP: &str = "Clear it in the setup of the firmware";

/// Whether the firmware does what it is asked for only while a person presses a key.
enum Presence {
    Required,
    NotRequired,
}

/// The kernel's files of the physical presence interface (Documentation/ABI/testing/sysfs-driver-ppi).
struct Firmware(PathBuf);

impl Firmware {
    fn below(sys: &Path) -> Self {
        Self(sys.join("class/tpm/tpm0/ppi"))
    }

    /// Asks it to clear the TPM at the next boot.
    fn ask(&self) -> Result<Presence, String> {
        let said = |file: &Path, error: std::io::Error| format!("{}: {error}", file.display());
        let operations = self.0.join("tcg_operations");
        let listed = std::fs::read_to_string(&operations).map_err(|error| said(&operations, error))?;
        let presence = presence(&listed)?;
        let request = self.0.join("request");
        // Not created: what is no file of the kernel's reaches no firmware.
        let asked = std::fs::OpenOptions::new().write(true).open(&request);
        asked
            .and_then(|mut file| std::io::Write::write_all(&mut file, CLEAR.as_bytes()))
            .map_err(|error| said(&request, error))?;
        Ok(presence)
    }

    /// What it says of the last request: `5 0: Success`, `5 4294967280: User Abort`.
    fn response(&self) -> String {
        let file = self.0.join("response");
        match std::fs::read_to_string(&file) {
            Ok(text) => format!("it says {:?}", text.trim()),
            Err(error) => format!("{}: {error}", file.display()),
        }
    }
}

/// What the list of operations, with lines like `5 4: User not required`, says of clearing. The numbers are those of the interface:
/// 0 not implemented, 1 only by the firmware, 2 blocked for the operating system, 3 and 4 allowed.
fn presence(operations: &str) -> Result<Presence, String> {
    let mut lines = operations.lines().filter_map(|line| line.split_once(' '));
    let clear = lines.find(|(operation, _)| *operation == CLEAR).map(|(_, rest)| rest.trim());
    match clear.and_then(|rest| rest.split(':').next()) {
        Some("3") => Ok(Presence::Required),
        Some("4") => Ok(Presence::NotRequired),
        _ => Err(format!("it says of clearing: {:?}", clear.unwrap_or_default())),
    }
}
