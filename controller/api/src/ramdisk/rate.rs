//! How many requests an address may send to the endpoints of agents, whose senders are unknown, and how many heartbeats a
//! node whose agent has shown its token: a token bucket for each.

use crate::client_address;
use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::request_rate::RequestRate;
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use http_server::address_key;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// Most addresses, or nodes, that are remembered; some 4 MiB.
const ADDRESSES: usize = 1 << 16;

/// What each address, or each node, may still send.
pub struct Rates<K = IpAddr> {
    rate: RequestRate,
    buckets: Mutex<HashMap<K, Bucket>>,
}

/// Requests that an address may still send, as of `at`.
#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn at(self, rate: RequestRate, now: Instant) -> Self {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(rate.per_s);
        Self { left: (self.left + gained).min(f64::from(rate.burst)), at: now }
    }
}

impl<K: Copy + Eq + Hash> Rates<K> {
    /// Every address may send `rate.burst` requests at once.
    pub fn new(rate: RequestRate) -> Arc<Self> {
        Arc::new(Self { rate, buckets: Mutex::default() })
    }

    /// Whether one more request of this address is accepted.
    pub fn accepts(&self, address: K, now: Instant) -> bool {
        if self.rate.per_s == 0 {
            return true;
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= ADDRESSES && !buckets.contains_key(&address) {
            // A full bucket is as good as none. Where the addresses of an attacker leave no room, all begin anew.
            let burst = f64::from(self.rate.burst);
            buckets.retain(|_, bucket| bucket.at(self.rate, now).left < burst);
            if buckets.len() >= ADDRESSES {
                buckets.clear();
            }
        }
        let full = Bucket { left: f64::from(self.rate.burst), at: now };
        let bucket = buckets.entry(address).or_insert(full);
        *bucket = bucket.at(self.rate, now);
        let accepted = bucket.left >= 1.0;
        if accepted {
            bucket.left -= 1.0;
        }
        accepted
    }
}

impl Rates {
    /// Put this limit in front of an endpoint. A request without a known address (in tests without a socket) passes.
    pub fn limited(self: &Arc<Self>, endpoint: Endpoint) -> Endpoint {
        let rates = self.clone();
        let layer = from_fn(move |request: Request, next: Next| {
            let rates = rates.clone();
            async move {
                let client = client_address::of(request.extensions()).map(address_key);
                if client.is_none_or(|address| rates.accepts(address, Instant::now())) {
                    return next.run(request).await;
                }
                let refused = ApiError::client(429, "This address sends too many requests; try again later.");
                let mut response = refused.into_response();
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                response
            }
        });
        endpoint.map(|handler| handler.route_layer(layer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[test]
    fn an_address_may_send_a_burst_and_then_its_rate() {
        let rates = Rates::new(RequestRate { per_s: 2, burst: 3 });
        let (first, second) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        let start = Instant::now();
        let accepted = |address, millis| {
            (0..10).filter(|_| rates.accepts(address, start + Duration::from_millis(millis))).count()
        };
        assert_eq!((accepted(first, 0), accepted(second, 0)), (3, 3), "each address has its own");
        assert_eq!((accepted(first, 400), accepted(first, 500), accepted(first, 1500)), (0, 1, 2));
        assert_eq!(accepted(first, 3_600_000), 3, "a long pause is worth one burst");
        let unlimited = Rates::new(RequestRate { per_s: 0, burst: 0 });
        assert!((0..100).all(|_| unlimited.accepts(first, start)));
    }

    #[test]
    fn the_number_of_remembered_addresses_is_bounded() {
        let rates: Arc<Rates> = Rates::new(RequestRate { per_s: 1, burst: 1 });
        let start = Instant::now();
        for number in 0..u32::try_from(ADDRESSES).unwrap() + 10 {
            assert!(rates.accepts(Ipv4Addr::from(number).into(), start));
        }
        assert!(rates.buckets.lock().unwrap().len() <= ADDRESSES);
        assert!(!rates.accepts(Ipv4Addr::from(u32::try_from(ADDRESSES).unwrap() + 9).into(), start));
    }
}
