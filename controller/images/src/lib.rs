//! The images that the controller has itself: files below one directory (`file://`), and a cache of what it fetched.
//!
//! ```text
//!   conductor ─ begin, state ─▶ ImageStore ─▶ a job (thread): checksum file, fetch into NAME.part, digest ─▶ rename to NAME
//!   api ─────── state ────────▶            ─▶ an open file, whose digest is the one that was asked for
//! ```
//!
//! A name is made of the URL without its secrets and of the digest: nothing is served under another URL or digest than it
//! was fetched and checked for. Nothing is kept in memory that a restart would miss: a job that is asked for again begins
//! again, and what runs use is asked of the database.
//!
//! What is absent: HTTP towards nodes (`api`), when to wait for an image (`conductor`).

mod cache;
mod directory;
mod jobs;
mod offer;
mod proxies;
mod settings;
mod space;
mod store;
mod trust;
mod wanted;

pub use offer::{Endpoint, ImageCopy, ImageOffer};
pub use proxies::{AgentProxies, ProxyUrl};
pub use settings::Settings;
pub use store::{ImageStore, Ready, State};
pub use trust::AgentTrust;
pub use wanted::{Origin, Wanted};
