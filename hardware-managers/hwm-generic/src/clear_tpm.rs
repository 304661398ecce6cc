//! Clears the TPM of what the node's users have put into it.

use block::Roots;
use hwm_sdk::{StepError, StepOutcome};
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

/// Clear it. Where only a user or the firmware may, the firmware is asked to do so at the next boot, and the step fails.
///
/// # Errors
/// The TPM is not cleared; the error says what will clear it.
pub(crate) fn run(roots: &Roots) -> Result<StepOutcome, StepError> {
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
    Err(failed(format!("the TPM is not cleared: {why}; {}", ask_firmware(&roots.sys))))
}

/// Asks the firmware to clear it, and says what comes of that.
fn ask_firmware(sys: &Path) -> String {
    let request = sys.join("class/tpm/tpm0/ppi/request");
    // Not created: what is no file of the kernel's reaches no firmware.
    let asked = std::fs::OpenOptions::new().write(true).open(&request);
    match asked.and_then(|mut file| std::io::Write::write_all(&mut file, CLEAR.as_bytes())) {
        Ok(()) => {
            "its firmware was asked to clear it at the next boot, where it may want a key pressed at the \
                   machine. Then clean the node again"
                .to_owned()
        }
        Err(error) => format!(
            "clear it in the setup of the firmware, which takes no request from here ({}: {error})",
            request.display()
        ),
    }
}
