//! The agent's side: what is asked of a TPM.

mod clear;
mod error;
mod open;
mod prover;
mod session;
mod transport;

pub use clear::ClearAuthority;
pub use error::TpmError;
pub use open::open;
pub use prover::{Prover, Quoted};
pub use session::Tpm;
pub use transport::{Channel, Transport};
