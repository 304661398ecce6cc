//! Listeners of the API: plain HTTP on loopback, TLS elsewhere, and which clients each of them accepts.

use crate::config::Config;
use crate::connections::Classes;
use crate::identity::Identity;
use crate::services::Services;
use anyhow::{Context, Result};
use api::{App, Auth, OriginCheck};
use http_server::Server;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long answers may still go out after a signal to stop.
const DRAIN: Duration = Duration::from_secs(20);

/// Serve the API on every configured address.
pub async fn serve_all(
    config: &Config,
    identity: &Identity,
    app: App,
    classes: &Classes,
    stop: &CancellationToken,
    services: &mut Services,
) -> Result<()> {
    let users = config.api.users().context("configuration")?.map(Arc::new);
    for address in &config.api.listen {
        let auth = accepted(users.as_ref(), address.ip());
        let accepts = match &auth {
            Auth::NoAuth => "for every client that reaches it",
            Auth::Agents => "for agents only",
            Auth::Basic(_) => "for agents, and for users with a password",
        };
        let router = if address.ip().is_loopback() {
            let site = OriginCheck::new(&config.api.allowed_hosts, &config.api.public_endpoint);
            api::loopback_router(app.clone(), auth, site)
        } else {
            api::guarded_router(app.clone(), auth)
        };
        let listener = TcpListener::bind(address).await.with_context(|| format!("api.listen {address}"))?;
        let bound = listener.local_addr()?;
        let plain = address.ip().is_loopback();
        let (tls, clients) = match plain {
            true => (None, classes.operators()),
            false => (Some(identity.server()?), classes.agents()),
        };
        let server = Server { listener, tls, router, clients };
        let stopped = stop.clone();
        services.start(format!("the API on {bound}"), async move {
            server.run(stopped, DRAIN).await;
            Ok(())
        });
        tracing::info!("API on {}://{bound}, {accepts}", if plain { "http" } else { "https" });
    }
    Ok(())
}

/// The clients that an address accepts. Without user files, a client that is not on loopback cannot authenticate.
fn accepted(users: Option<&Arc<api::auth::Users>>, address: IpAddr) -> Auth {
    match users {
        Some(users) => Auth::Basic(users.clone()),
        None if address.is_loopback() => Auth::NoAuth,
        None => Auth::Agents,
    }
}

#[cfg(test)]
mod tests {
    use super::accepted;
    use api::Auth;
    use api::auth::Users;
    use std::sync::Arc;

    #[test]
    fn without_users_only_loopback_accepts_every_client() {
        for (address, every_client) in [
            ("127.0.0.1", true),
            ("127.3.2.1", true),
            ("::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.0.2.1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(matches!(accepted(None, address), Auth::NoAuth), every_client, "{address}");
            assert_eq!(matches!(accepted(None, address), Auth::Agents), !every_client, "{address}");
            let file = tempfile::NamedTempFile::new().unwrap();
            let users = Arc::new(Users::open(file.path().to_owned(), None).unwrap());
            assert!(matches!(accepted(Some(&users), address), Auth::Basic(_)));
        }
    }
}
