//! Listeners of the API: plain on loopback, TLS elsewhere; and who is let in at each.

use crate::config::Config;
use crate::identity::Identity;
use crate::listener::TlsListener;
use anyhow::{Context, Result};
use api::{App, Auth};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Serve the API on every configured address.
pub async fn serve_all(
    config: &Config,
    identity: &Identity,
    app: App,
    stop: &CancellationToken,
    tasks: &mut JoinSet<Result<()>>,
) -> Result<()> {
    let users = config.api.users().context("configuration")?.map(Arc::new);
    for address in &config.api.listen {
        let auth = let_in(users.as_ref(), address.ip());
        let who = match &auth {
            Auth::NoAuth => "for everybody who reaches it",
            Auth::Agents => "for agents alone",
            Auth::Basic(_) => "for agents, and users with a password",
        };
        let service = api::guarded_router(app.clone(), auth);
        let listener = TcpListener::bind(address).await.with_context(|| format!("api.listen {address}"))?;
        let bound = listener.local_addr()?;
        let stopped = stop.clone().cancelled_owned();
        if address.ip().is_loopback() {
            tasks.spawn(
                async move { Ok(axum::serve(listener, service).with_graceful_shutdown(stopped).await?) },
            );
            tracing::info!("API on http://{bound}, {who}");
        } else {
            let listener = TlsListener::new(listener, identity.server()?);
            tasks.spawn(
                async move { Ok(axum::serve(listener, service).with_graceful_shutdown(stopped).await?) },
            );
            tracing::info!("API on https://{bound}, {who}");
        }
    }
    Ok(())
}

/// Who is let in at an address. Without users nobody off loopback has proved who he is.
fn let_in(users: Option<&Arc<api::auth::Users>>, address: IpAddr) -> Auth {
    match users {
        Some(users) => Auth::Basic(users.clone()),
        None if address.is_loopback() => Auth::NoAuth,
        None => Auth::Agents,
    }
}

#[cfg(test)]
mod tests {
    use super::let_in;
    use api::Auth;
    use api::auth::Users;
    use std::sync::Arc;

    #[test]
    fn without_users_only_loopback_is_everybodys() {
        for (address, everybody) in [
            ("127.0.0.1", true),
            ("127.3.2.1", true),
            ("::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.0.2.1", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(matches!(let_in(None, address), Auth::NoAuth), everybody, "{address}");
            assert_eq!(matches!(let_in(None, address), Auth::Agents), !everybody, "{address}");
            let file = tempfile::NamedTempFile::new().unwrap();
            let users = Arc::new(Users::open(file.path().to_owned(), None).unwrap());
            assert!(matches!(let_in(Some(&users), address), Auth::Basic(_)));
        }
    }
}
