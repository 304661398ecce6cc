//! The process.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tpm::{Channel, Transport};

/// For the process to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A TPM that has been powered on. It keeps its seeds and its memory over power cuts, and ends with this value.
#[derive(Debug)]
pub struct SoftwareTpm {
    directory: TempDir,
    process: Child,
}

impl SoftwareTpm {
    /// A new TPM, as it leaves its maker: no other has its endorsement key.
    #[expect(clippy::new_without_default, reason = "it starts a process")]
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let process = start(&directory);
        let tpm = Self { directory, process };
        drop(tpm.connect());
        tpm
    }

    /// Where it answers: a socket that takes one client after another.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// A connection. Another one waits until this is closed.
    pub fn connect(&self) -> Channel<UnixStream> {
        let begun = Instant::now();
        loop {
            match UnixStream::connect(self.socket()) {
                Ok(stream) => return Channel(stream),
                Err(error) if begun.elapsed() > PATIENCE => panic!("swtpm does not listen: {error}"),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// Cut the power without a word to the TPM, and power it on again: all PCRs are as before a boot.
    pub fn cut_power(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("reaped");
        for name in ["socket", "control"] {
            std::fs::remove_file(self.directory.path().join(name)).expect("a socket");
        }
        self.process = start(&self.directory);
        drop(self.connect());
    }

    /// Send these bytes.
    ///
    /// # Panics
    /// When the TPM refuses the command.
    pub fn command(&self, bytes: &[u8]) -> Vec<u8> {
        let response = self.connect().exchange(bytes).expect("a response");
        assert_eq!(response[6..10], [0; 4], "the TPM refuses {bytes:02x?}");
        response
    }

    /// `TPM2_PCR_Extend` in the SHA-256 bank.
    pub fn extend(&self, pcr: u8, digest: tpm::Digest) {
        let mut command = vec![0x80, 0x02, 0, 0, 0, 65, 0, 0, 0x01, 0x82, 0, 0, 0, pcr];
        // The empty password.
        command.extend([0, 0, 0, 9, 0x40, 0, 0, 9, 0, 0, 0, 0, 0]);
        command.extend([0, 0, 0, 1, 0, 0x0b]);
        command.extend(digest.0);
        self.command(&command);
    }
}

impl Drop for SoftwareTpm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(directory: &TempDir) -> Child {
    let place = directory.path().display();
    let mut command = Command::new("swtpm");
    command.args(["socket", "--tpm2", "--flags", "not-need-init,startup-clear"]);
    command.arg("--tpmstate").arg(format!("dir={place}"));
    command.arg("--server").arg(format!("type=unixio,path={place}/socket"));
    command.arg("--ctrl").arg(format!("type=unixio,path={place}/control"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("swtpm of Debian's package swtpm")
}
