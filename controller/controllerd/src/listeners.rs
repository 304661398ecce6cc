//! Listeners of the API: plain HTTP on loopback, TLS elsewhere, and which clients each of them accepts.

use crate::config::Config;
use crate::identity::Identity;
use crate::services::Services;
use crate::tls_listener::TlsListener;
use anyhow::{Context, Result};
use api::{App, Auth, ClientAddressService, OriginCheck};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serve the API on every configured address.
pub async fn serve_all(
    config: &Config,
    identity: &Identity,
    app: App,
    stop: &CancellationToken,
    services: &mut Services,
) -> Result<()> {
    let users = config.api.users().context("configuration")?.map(Arc::new);
    for address in &config.api.listen {
        let auth = accepted(users.as_ref(), address.ip());
        let clients = match &auth {
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
        let service = ClientAddressService(router);
        let listener = TcpListener::bind(address).await.with_context(|| format!("api.listen {address}"))?;
        let bound = listener.local_addr()?;
        let stopped = stop.clone().cancelled_owned();
        if address.ip().is_loopback() {
            let serving = axum::serve(listener, service).with_graceful_shutdown(stopped);
            services.start(format!("the API on {bound}"), async move { Ok(serving.await?) });
            tracing::info!("API on http://{bound}, {clients}");
        } else {
            let listener = TlsListener::new(listener, identity.server()?);
            let serving = axum::serve(listener, service).with_graceful_shutdown(stopped);
            services.start(format!("the API on {bound}"), async move { Ok(serving.await?) });
            tracing::info!("API on https://{bound}, {clients}");
        }
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
