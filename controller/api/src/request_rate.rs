//! A limit on requests.

/// How many requests an address may send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestRate {
    /// Requests per second in the long run; 0: any number.
    pub per_s: u32,
    /// Requests at once, after a pause.
    pub burst: u32,
}
