//! Where the TPM is, and the firmware's log.

use agent_protocol::boot_proof::LONGEST_EVENT_LOG;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

/// The files of the kernel, or those of a test.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The TPM behind the kernel's resource manager; a socket is that of a software TPM.
    pub device: PathBuf,
    /// Of what the firmware measured.
    pub log: PathBuf,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            device: "/dev/tpmrm0".into(),
            log: "/sys/kernel/security/tpm0/binary_bios_measurements".into(),
        }
    }
}

impl Sources {
    /// Whether there is a TPM.
    pub fn exist(&self) -> bool {
        self.device.exists()
    }

    /// The log. The kernel has none where the firmware gave none, as by BIOS.
    pub(super) fn log(&self) -> Result<Vec<u8>, String> {
        let problem = |error: io::Error| format!("{}: {error}", self.log.display());
        let mut log = Vec::new();
        let file = File::open(&self.log).map_err(problem)?;
        file.take(LONGEST_EVENT_LOG as u64 + 1).read_to_end(&mut log).map_err(problem)?;
        if log.len() > LONGEST_EVENT_LOG {
            return Err(format!("it is longer than {LONGEST_EVENT_LOG} bytes"));
        }
        Ok(log)
    }
}
