//! Where the TPM is, and the firmware's log.

use agent_protocol::boot_proof::LONGEST_EVENT_LOG;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tpm::{Channel, Tpm, TpmError, Transport};

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

    /// The TPM; `None` where there is none.
    pub(super) fn open(&self) -> Result<Option<Tpm<Box<dyn Transport + Send>>>, TpmError> {
        let transport: Box<dyn Transport + Send> = match std::fs::metadata(&self.device) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
            Ok(found) if found.file_type().is_socket() => {
                Box::new(Channel(UnixStream::connect(&self.device)?))
            }
            Ok(_) => Box::new(Channel(OpenOptions::new().read(true).write(true).open(&self.device)?)),
        };
        Ok(Some(Tpm::new(transport)))
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
