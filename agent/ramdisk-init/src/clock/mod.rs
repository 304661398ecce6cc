//! Sets the clock by one question to a time server (SNTP: RFC 4330, RFC 5905 section 14). Nothing of the boot depends on the
//! answer.

mod message;

use message::Answer;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_settime};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const PORT: u16 = 123;
/// How long a server is waited for.
const ANSWER: Duration = Duration::from_secs(1);
/// How long all servers together are waited for, their names included. What comes later is not used.
const ALL: Duration = Duration::from_secs(5);
/// Addresses of one name that are asked.
const ADDRESSES: usize = 2;
/// A clock that differs by less is left alone.
const RIGHT: Duration = Duration::from_millis(500);
/// Longer datagrams are cut; what counts stands at the beginning.
const DATAGRAM: usize = 1024;

/// The time, as a duration since 1970, at a moment of the clock that never jumps.
#[derive(Debug, Clone, Copy)]
struct Reading {
    time: Duration,
    at: Instant,
}

/// Set the clock by the first of these servers (addresses or names) that answers rightly. Ends after [`ALL`] at the latest.
pub fn set(servers: Vec<String>) {
    if servers.is_empty() {
        return;
    }
    let until = Instant::now() + ALL;
    let (reading, read) = mpsc::channel();
    // A thread of its own: looking up a name has no limit of ours.
    thread::spawn(move || {
        // What comes too late has no receiver any more.
        let _ = reading.send(first(&servers, PORT, until));
    });
    match read.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(Some(reading)) => apply(reading),
        Ok(None) | Err(_) => tracing::warn!("no time server has answered; the clock stays as it is"),
    }
}

fn first(servers: &[String], port: u16, until: Instant) -> Option<Reading> {
    for server in servers {
        let addresses = match (server.as_str(), port).to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(error) => {
                tracing::warn!(server, %error, "the name of a time server is not known");
                continue;
            }
        };
        for address in addresses.take(ADDRESSES) {
            let left = until.saturating_duration_since(Instant::now()).min(ANSWER);
            match ask(address, left) {
                Ok(reading) => {
                    tracing::info!(server, %address, "the time");
                    return Some(reading);
                }
                Err(error) => tracing::warn!(server, %address, %error, "no time"),
            }
        }
    }
    None
}

/// The time of a server, asked once.
fn ask(server: SocketAddr, limit: Duration) -> io::Result<Reading> {
    let any = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // From here on only this server is heard.
    socket.connect(server)?;
    let mut nonce = [0; 8];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    let asked = Instant::now();
    socket.send(&message::question(nonce))?;
    let mut datagram = [0; DATAGRAM];
    loop {
        let left = limit.saturating_sub(asked.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = match socket.recv(&mut datagram) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
        let at = Instant::now();
        match message::answer(&datagram[..length], nonce) {
            // The server sent it about half of the way ago.
            Answer::Time(time) => return Ok(Reading { time: time + (at - asked) / 2, at }),
            Answer::Foreign => {}
            Answer::Useless(why) => return Err(io::Error::other(why)),
        }
    }
}

fn apply(reading: Reading) {
    let now = reading.time + reading.at.elapsed();
    let before = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let wrong_by = now.abs_diff(before);
    if wrong_by < RIGHT {
        tracing::info!(seconds = wrong_by.as_secs_f32(), "the clock is right");
        return;
    }
    let direction = if now > before { "behind" } else { "ahead" };
    match clock_settime(ClockId::CLOCK_REALTIME, TimeSpec::from_duration(now)) {
        Ok(()) => tracing::warn!(seconds = wrong_by.as_secs_f32(), "the clock jumped: it was {direction}"),
        Err(error) => tracing::error!(%error, "the clock cannot be set"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::{LENGTH, reply};

    const THEN: Duration = Duration::from_secs(1_800_000_000);

    /// A server of one question, which answers with what `answers` makes of it.
    fn server(
        address: &str,
        answers: impl FnOnce(&[u8; LENGTH]) -> Vec<Vec<u8>> + Send + 'static,
    ) -> SocketAddr {
        let socket = UdpSocket::bind(address).expect("a socket");
        let bound = socket.local_addr().expect("bound");
        thread::spawn(move || {
            let mut question = [0; LENGTH];
            let (_, from) = socket.recv_from(&mut question).expect("a question");
            for answer in answers(&question) {
                socket.send_to(&answer, from).expect("sent");
            }
        });
        bound
    }

    #[test]
    fn the_time_of_a_server_is_read_over_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let bound = server(address, |question| {
                let mut foreign = reply(question, THEN);
                foreign[31] ^= 1;
                vec![foreign, Vec::new(), reply(question, THEN)]
            });
            let reading = ask(bound, Duration::from_secs(10)).expect(address);
            let away = reading.time.abs_diff(THEN);
            assert!(away < Duration::from_secs(5), "{away:?}");
        }
    }

    #[test]
    fn a_wrong_or_absent_answer_is_an_error_and_the_next_server_is_asked() {
        let refused = server("127.0.0.1:0", |question| {
            let mut kiss = reply(question, THEN);
            kiss[1] = 0;
            vec![kiss]
        });
        let error = ask(refused, Duration::from_secs(10)).expect_err("a kiss of death");
        assert!(error.to_string().contains("stratum"), "{error}");
        let silent = server("127.0.0.1:0", |_| Vec::new());
        let error = ask(silent, Duration::from_millis(50)).expect_err("silence");
        assert_eq!(error.kind(), ErrorKind::TimedOut);

        // Nothing listens at the first address.
        let bound = server("127.0.0.1:0", |question| vec![reply(question, THEN)]);
        let servers = ["127.0.0.9", "127.0.0.1"].map(str::to_owned);
        let until = Instant::now() + Duration::from_secs(60);
        let reading = first(&servers, bound.port(), until).expect("the second answers");
        assert!(reading.time.abs_diff(THEN) < Duration::from_secs(5));
        assert!(first(&servers[..1], bound.port(), until).is_none());
    }
}
