//! Reports to systemd (sd_notify(3)): that the controller is ready, alive, or stopping.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The supervisor's socket, if there is one.
pub struct Supervisor {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that the process is alive.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// As the environment of the process says: `NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`.
    ///
    /// # Errors
    /// `NOTIFY_SOCKET` names no address of a socket.
    pub fn from_environment() -> io::Result<Self> {
        let text = |name: &str| std::env::var_os(name);
        let number = |name: &str| text(name).and_then(|value| value.to_str()?.parse::<u64>().ok());
        let socket = match text("NOTIFY_SOCKET") {
            Some(name) => Some((UnixDatagram::unbound()?, address(&name)?)),
            None => None,
        };
        let meant = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| meant && *micros > 0);
        Ok(Self { socket, watchdog: watchdog.map(Duration::from_micros) })
    }

    /// Everything is served.
    pub fn ready(&self) {
        self.report("READY=1");
    }

    /// The process was asked to stop and finishes its work.
    pub fn stopping(&self) {
        self.report("STOPPING=1");
    }

    /// Say that the process is alive, twice in each of the supervisor's periods. Returns only if it does not want to
    /// hear that. When no thread of the runtime gets to this for a whole period, the supervisor restarts the process.
    pub async fn keep_alive(&self) {
        let Some(period) = self.watchdog else { return };
        let mut ticks = tokio::time::interval(period / 2);
        loop {
            ticks.tick().await;
            self.report("WATCHDOG=1");
        }
    }

    fn report(&self, state: &str) {
        let Some((socket, address)) = &self.socket else { return };
        if let Err(error) = socket.send_to_addr(state.as_bytes(), address) {
            tracing::warn!(%error, state, "cannot report to the supervisor");
        }
    }
}

/// A path, or with `@` a name without a file.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}
