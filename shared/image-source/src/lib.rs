//! Where an image comes from, for controller and agent alike.
//!
//! ```text
//!   URL ──▶ resolve once ──▶ judge host and address ──▶ connect to that address ──▶ redirect? from the start again
//!                            (hosts.rs, pure)                     │
//!                                                       Range where a connection breaks ──▶ Receiver
//! ```
//!
//! With a proxy the host is judged by its name or address alone, and the proxy is connected to.
//!
//! Secrets of a URL are shown nowhere. What is absent: images, disks, protocol types of Ironic.

pub mod checksum;
mod connection;
mod credentials;
pub mod digest;
mod error;
mod fetch;
mod hosts;
mod names;
mod proxy;
mod ranges;
mod source;
mod trust;
pub mod url;
mod verifier;

pub use checksum::{Algorithm, Checksum, ChecksumSource};
pub use digest::Digest;
pub use error::SourceError;
pub use fetch::{Fetch, Head, Receiver, fetch, fetch_small};
pub use hosts::{Host, Hosts};
pub use hyper::body::Bytes;
pub use proxy::{NoProxy, Proxies, Proxy};
pub use ranges::Ranges;
pub use source::{Limits, RequestHeaders, Source};
pub use trust::{Pins, Signers, Trust, authorities, pin};
pub use url::{ImageUrl, MaskedUrl};
