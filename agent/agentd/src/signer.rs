//! The key that signs evidence lives in a process of its own: this program, started again before anything is read that
//! came with a disk or over the network. The process generates the key, confines itself, and from then on reads only what
//! the agent asks it to sign. Its memory holds nothing else, and the agent's does not hold the key.
//!
//! ```text
//!   agent ── length (four bytes, big-endian), payload of an evidence ──▶ process, descriptor 0
//!         ◀── public key as text, once; then for each payload 64 bytes of signature ── descriptor 1
//! ```
//!
//! The process signs evidence only: it puts the prefix of evidence before each payload.

use certificate::{Evidence, PublicKey, Signed, SigningKey};
use sandbox::OwnGrants;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// First argument of the process.
pub const WORD: &str = "--sign-evidence";
/// Bytes of the longest payload: an erase report is a tenth of it at most.
const LONGEST: u32 = 16 << 20;
const SIGNATURE: usize = 64;
/// Characters of a public key.
const PUBLIC: usize = "ed25519:".len() + 64;
const GRANTS: OwnGrants = OwnGrants { sysfs: false, memory_mib: 64, processor_s: None };

/// The process that signs, as the agent has it. It ends with the agent.
#[derive(Debug)]
pub struct Signer {
    public: PublicKey,
    /// `None` once it has failed: what it answers then could belong to another question.
    pipes: Mutex<Option<Pipes>>,
    child: Child,
}

#[derive(Debug)]
struct Pipes {
    payloads: ChildStdin,
    signatures: ChildStdout,
}

impl Signer {
    /// Start `program` as the process that signs.
    ///
    /// # Errors
    /// It cannot be started, or ends without a key: it could not be confined.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.arg(WORD).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(payloads), Some(mut signatures)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let mut public = [0; PUBLIC];
        signatures.read_exact(&mut public)?;
        let public = String::from_utf8_lossy(&public).parse().map_err(io::Error::other)?;
        Ok(Self { public, pipes: Mutex::new(Some(Pipes { payloads, signatures })), child })
    }

    /// The public half of its key.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Sign.
    ///
    /// # Errors
    /// The process has ended. Nothing is signed from then on.
    pub fn sign(&self, evidence: &Evidence) -> io::Result<Signed> {
        let mut held = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        let signed = match held.as_mut() {
            Some(pipes) => evidence.signed_by(&self.public, |payload| pipes.ask(payload.as_bytes())),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if signed.is_err() {
            *held = None;
        }
        signed
    }

    /// Id of the process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }
}

impl Pipes {
    fn ask(&mut self, payload: &[u8]) -> io::Result<[u8; SIGNATURE]> {
        let length = u32::try_from(payload.len()).ok().filter(|length| *length <= LONGEST);
        let length = length.ok_or_else(|| io::Error::other("the evidence is too long to be signed"))?;
        self.payloads.write_all(&length.to_be_bytes())?;
        self.payloads.write_all(payload)?;
        self.payloads.flush()?;
        let mut signature = [0; SIGNATURE];
        self.signatures.read_exact(&mut signature)?;
        Ok(signature)
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        // Its input ends, and so does it.
        *self.pipes.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        // In the ramdisk init has reaped it.
        let _ = self.child.wait();
    }
}

/// Be the process that signs, until the agent ends. Called first in `main`, with [`WORD`] as the first argument.
pub fn serve() -> std::process::ExitCode {
    match confined() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anneal-agent: erases will not be certified: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn confined() -> Result<(), String> {
    sandbox::confine_this_process(&GRANTS).map_err(|error| error.to_string())?;
    let (key, _) = SigningKey::generate().map_err(|error| error.to_string())?;
    answer(&key, &mut io::stdin().lock(), &mut io::stdout().lock()).map_err(|error| error.to_string())
}

fn answer(key: &SigningKey, payloads: &mut dyn Read, signatures: &mut dyn Write) -> io::Result<()> {
    signatures.write_all(key.public().to_string().as_bytes())?;
    signatures.flush()?;
    let mut length = [0; 4];
    loop {
        match payloads.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let length = u32::from_be_bytes(length);
        if length > LONGEST {
            return Err(io::Error::other("the payload is too long"));
        }
        let mut payload = String::new();
        let read = payloads.take(length.into()).read_to_string(&mut payload)?;
        if read as u64 != u64::from(length) {
            return Ok(());
        }
        signatures.write_all(&certificate::sign_evidence(&payload, key))?;
        signatures.flush()?;
    }
}
