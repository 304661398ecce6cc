//! How commands reach a TPM.

use std::io::{self, Read, Write};

/// Bytes before the parameters of a response: tag, size, code.
pub(super) const HEADER: usize = 10;
/// Bytes of the longest response of a TPM on a PC.
const LONGEST: usize = 4096;

/// Takes a command, returns the response.
pub trait Transport {
    /// # Errors
    /// The TPM cannot be reached, or what it says has no end.
    fn exchange(&mut self, command: &[u8]) -> io::Result<Vec<u8>>;
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn exchange(&mut self, command: &[u8]) -> io::Result<Vec<u8>> {
        (**self).exchange(command)
    }
}

/// `/dev/tpmrm0`, or a socket of a software TPM.
#[derive(Debug)]
pub struct Channel<S>(pub S);

impl<S: Read + Write> Transport for Channel<S> {
    fn exchange(&mut self, command: &[u8]) -> io::Result<Vec<u8>> {
        self.0.write_all(command)?;
        let mut response = vec![0; LONGEST];
        let mut read = 0;
        loop {
            match self.0.read(&mut response[read..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
            let size = response[2..6].iter().fold(0, |size, byte| size << 8 | usize::from(*byte));
            if read < HEADER {
                continue;
            }
            if !(HEADER..=LONGEST).contains(&size) || read > size {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the size of its response is wrong"));
            }
            if read == size {
                response.truncate(size);
                return Ok(response);
            }
        }
    }
}
