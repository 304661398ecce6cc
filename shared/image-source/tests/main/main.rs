//! Mirrors with certificates and names, on loopback.

mod authority;
mod mirror;
mod names;
mod proxy;
mod tls;
