//! Where the database is, and how much is believed of who answers there: what `[database] url` says.

use crate::open_error::OpenError;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// How to reach a database, and how long to wait for it.
#[derive(Clone)]
pub struct Settings {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…&sslrootcert=…`
    pub url: String,
    /// The password, instead of one in the URL. A secret.
    pub password: Option<String>,
    /// Most connections of operators and the conductor, from 1; those of agents and boot are [`AGENT_CONNECTIONS`] more, and one
    /// listens.
    pub connections: usize,
    /// How long a connection may take, and how long a call waits for a database that cannot be reached.
    pub connect_timeout: Duration,
    /// How long one statement may take. Lists have a limit of their own.
    pub statement_timeout: Duration,
}

/// Milliseconds for which a transaction may wait for its controller. One that is frozen or cut off in the middle of a
/// transaction keeps the locks of its rows, and with them others from taking its nodes over: no longer than they need to
/// see that it is gone.
const IDLE_MS: u32 = 5000;

/// Connections for the calls of clients without any right.
pub const AGENT_CONNECTIONS: usize = 4;

impl Settings {
    /// With the defaults for all but the place.
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            password: None,
            connections: 16,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Check the URL, without connecting.
    ///
    /// # Errors
    /// It is no URL of a database, or one that is not accepted.
    pub fn check(&self) -> Result<(), OpenError> {
        read(self).map(drop)
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Settings")
    }
}

/// How the server proves who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Not at all: no TLS.
    Plain,
    /// By a certificate for its name, of one of the authorities in this file, or of the system's.
    Certificate(Option<PathBuf>),
}

/// A database, as it is reached.
#[derive(Clone)]
pub struct Address {
    /// Of tokio-postgres.
    pub config: Config,
    /// Whom to believe.
    pub trust: Trust,
    /// Without the password, for messages.
    pub name: String,
    /// How long a connection may take in all: each of the hosts is tried in turn, and one that does not answer must leave time
    /// for the next.
    pub limit: Duration,
}

/// What the URL means.
///
/// # Errors
/// It is no such URL, or its `sslmode` is none of those that are known. The text quotes nothing of the URL.
pub fn read(settings: &Settings) -> Result<Address, OpenError> {
    let (base, parameters) = settings.url.split_once('?').unwrap_or((&settings.url, ""));
    let (mut mode, mut authorities, mut rest) = (None, None, Vec::new());
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value),
            Some(("sslrootcert", path)) => {
                authorities = Some(PathBuf::from(percent_decode_str(path).decode_utf8_lossy().into_owned()));
            }
            _ => rest.push(parameter),
        }
    }
    let is_postgres = base.starts_with("postgres://") || base.starts_with("postgresql://");
    let parsed = format!("{base}?{}", rest.join("&")).parse::<Config>().ok();
    let Some(mut config) = parsed.filter(|config| is_postgres && !config.get_hosts().is_empty()) else {
        return Err(OpenError::Url);
    };
    let trust = match mode {
        Some("disable") => Trust::Plain,
        None if authorities.is_none() && is_local(&config) => Trust::Plain,
        None | Some("verify-full") => Trust::Certificate(authorities),
        Some(_) => return Err(OpenError::SslMode),
    };
    config.ssl_mode(if trust == Trust::Plain { SslMode::Disable } else { SslMode::Require });
    if let Some(password) = &settings.password {
        config.password(password);
    }
    let name = name(&config);
    let hosts = config.get_hosts().len().max(config.get_hostaddrs().len());
    let limit = settings.connect_timeout.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX));
    let given = config.get_options().map(|given| format!("{given} ")).unwrap_or_default();
    let statement = settings.statement_timeout.as_millis().max(1);
    config
        .options(format!(
            "{given}-c statement_timeout={statement} -c idle_in_transaction_session_timeout={IDLE_MS}"
        ))
        .application_name("anneal-controller")
        .connect_timeout(settings.connect_timeout)
        // A network that is cut off is noticed within half a minute, also by the connection that only listens.
        .keepalives_idle(Duration::from_secs(10))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(20));
    Ok(Address { config, trust, name, limit })
}

/// Whether what is sent stays on this machine.
fn is_local(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
    })
}

fn name(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Unix(path) => path.display().to_string(),
        Host::Tcp(name) => name.clone(),
    });
    let (user, database) = (config.get_user().unwrap_or_default(), config.get_dbname());
    format!("{} at {}", database.unwrap_or(user), hosts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::TargetSessionAttrs;

    fn trust(url: &str) -> Result<Trust, String> {
        read(&Settings::at(url)).map(|address| address.trust).map_err(|error| error.to_string())
    }

    #[test]
    fn without_tls_only_what_stays_on_the_machine_or_is_asked_for() {
        let certificate = |path: Option<&str>| Ok(Trust::Certificate(path.map(PathBuf::from)));
        for plain in [
            "postgres://u@localhost/a",
            "postgresql://u:p@127.0.0.1:5433/a",
            "postgres://u@[::1]/a",
            "postgres://u@%2Frun%2Fpostgresql/a",
            "postgres:///a?host=/run/postgresql&user=u",
            "postgres://u@db.example/a?sslmode=disable",
        ] {
            assert_eq!(trust(plain), Ok(Trust::Plain), "{plain}");
        }
        assert_eq!(trust("postgres://u@db.example/a"), certificate(None));
        assert_eq!(trust("postgres://u@db.example,localhost/a"), certificate(None));
        assert_eq!(trust("postgres://u@localhost/a?sslmode=verify-full"), certificate(None));
        let own =
            "postgres://u@db.example/a?sslmode=verify-full&sslrootcert=/etc/a%20b.pem&connect_timeout=3";
        assert_eq!(trust(own), certificate(Some("/etc/a b.pem")));
        // Any other would send the password to any server that answers.
        for weak in ["require", "prefer", "allow", "verify-ca", ""] {
            let error = trust(&format!("postgres://u:hunter2@db.example/a?sslmode={weak}")).unwrap_err();
            assert!(error.contains("verify-full") && !error.contains("hunter2"), "{error}");
        }
    }

    /// A host that is gone answers nothing: its time must not be that of the others.
    #[test]
    fn each_of_several_hosts_has_its_time() {
        let url =
            "postgres://u@a.example:5432,b.example:5433,c.example:5432/d?target_session_attrs=read-write";
        let several = read(&Settings::at(url)).unwrap();
        assert_eq!(several.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
        assert_eq!(several.limit, 3 * Settings::at(url).connect_timeout);
        assert_eq!(several.name, "d at a.example,b.example,c.example");
    }

    #[test]
    fn no_message_shows_the_url() {
        for bad in [
            "hunter2",
            "mysql://u:hunter2@h/a",
            "host=h password=hunter2",
            "postgres:///hunter2",
            "postgres://u:hunter2@h:x/a",
            "postgres://u@h/a?hunter2=1",
        ] {
            let error = trust(bad).unwrap_err();
            assert!(error.contains("postgres://USER@HOST") && !error.contains("hunter2"), "{bad}: {error}");
        }
        let settings = Settings { password: Some("hunter2".into()), ..Settings::at("postgres://u@h:1/a") };
        let address = read(&settings).unwrap();
        assert_eq!(address.name, "a at h");
        assert_eq!(address.config.get_password(), Some(b"hunter2".as_slice()));
        assert!(!format!("{settings:?}").contains("hunter2"));
        let options = address.config.get_options().unwrap();
        assert!(options.contains("statement_timeout=30000"), "{options}");
    }

    #[test]
    fn a_transaction_waits_for_its_controller_no_longer_than_the_others() {
        let address = read(&Settings::at("postgres://u@127.0.0.1/a")).unwrap();
        let options = address.config.get_options().unwrap();
        let idle = options.split("idle_in_transaction_session_timeout=").nth(1).unwrap();
        let idle: u32 = idle.split(' ').next().unwrap().parse().unwrap();
        // A controller that has been silent for 8 s counts as gone.
        assert!((1..8000).contains(&idle), "{options}");
    }
}
