//! Commands and responses (TPM 2.0 Library, Part 1, section 18; Part 3).

use super::error::{Code, TpmError};
use super::transport::Transport;
use crate::bytes::{Malformed, Reader, Writer};
use std::time::{Duration, Instant};

/// `TPM_ST_NO_SESSIONS`, `TPM_ST_SESSIONS`.
const NO_SESSIONS: u16 = 0x8001;
const SESSIONS: u16 = 0x8002;
/// `TPM_RS_PW`.
const PASSWORD: u32 = 0x4000_0009;

/// For how long a command is repeated that the TPM wants to have again, and after which pause.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A TPM.
pub struct Tpm<T> {
    transport: T,
}

/// A command.
pub(crate) struct Command<'a> {
    pub(crate) name: &'static str,
    pub(crate) code: u32,
    pub(crate) handles: &'a [u32],
    pub(crate) authorizations: &'a [Authorization],
    pub(crate) parameters: Vec<u8>,
    /// The response has a handle.
    pub(crate) makes_handle: bool,
}

/// What entitles to use a handle.
#[derive(Clone, Copy)]
pub(crate) enum Authorization {
    /// The empty password.
    Empty,
    /// A policy session, which ends with the command.
    Policy(u32),
}

/// The handle, zero where there is none, and the parameters of a response.
pub(crate) struct Response {
    pub(crate) handle: u32,
    pub(crate) parameters: Vec<u8>,
}

impl<T: Transport> Tpm<T> {
    /// The TPM behind this transport.
    pub fn new(transport: T) -> Self {
        Self { transport }
    }

    pub(crate) fn run(&mut self, command: &Command) -> Result<Response, TpmError> {
        let bytes = command.bytes();
        let begun = Instant::now();
        loop {
            let response = self.transport.exchange(&bytes)?;
            let (tag, code, mut rest) = split(&response)?;
            if code == Code(0) {
                let handle = if command.makes_handle { rest.u32()? } else { 0 };
                let parameters = match tag {
                    SESSIONS => {
                        let length = rest.u32()?;
                        rest.take(length as usize)?
                    }
                    _ => rest.all(),
                };
                return Ok(Response { handle, parameters: parameters.to_vec() });
            }
            if !code.is_transient() || begun.elapsed() >= PATIENCE {
                return Err(TpmError::Refused { command: command.name, code });
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Tag, code, and what follows them.
fn split(response: &[u8]) -> Result<(u16, Code, Reader<'_>), Malformed> {
    let mut reader = Reader::new(response);
    let (tag, _size, code) = (reader.u16()?, reader.u32()?, reader.u32()?);
    Ok((tag, Code(code), reader))
}

impl Command<'_> {
    fn bytes(&self) -> Vec<u8> {
        let mut body = Writer::default();
        for handle in self.handles {
            body = body.u32(*handle);
        }
        if !self.authorizations.is_empty() {
            let area = self.authorizations.iter().fold(Writer::default(), |area, one| one.write(area)).done();
            body = body.u32(u32::try_from(area.len()).unwrap_or(u32::MAX)).raw(&area);
        }
        let body = body.raw(&self.parameters).done();
        let tag = if self.authorizations.is_empty() { NO_SESSIONS } else { SESSIONS };
        let size = u32::try_from(super::transport::HEADER + body.len()).unwrap_or(u32::MAX);
        Writer::default().u16(tag).u32(size).u32(self.code).raw(&body).done()
    }
}

impl Authorization {
    /// `TPMS_AUTH_COMMAND`: handle, nonce, attributes, authorization.
    fn write(self, area: Writer) -> Writer {
        let handle = match self {
            Self::Empty => PASSWORD,
            Self::Policy(session) => session,
        };
        area.u32(handle).sized(&[]).raw(&[0]).sized(&[])
    }
}
