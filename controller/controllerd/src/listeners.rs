//! Listeners of the API: plain HTTP on loopback, TLS elsewhere, and which clients each of them accepts.

use crate::config::{AuthStrategy, Config};
use crate::connections::Classes;
use crate::identity::Identity;
use crate::services::Services;
use crate::web_page::{self, ListenerScope};
use crate::{agent_runtime, operator_socket, operator_token};
use anyhow::{Context, Result};
use api::auth::{OperatorToken, Users};
use api::{App, Auth, OriginCheck};
use http_server::{Listener, Server};
use metrics::Metrics;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// How long answers may still go out after a signal to stop.
pub const DRAIN: Duration = Duration::from_secs(20);

/// What the listeners have in common.
pub struct Listeners<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The limits of each class of clients.
    pub classes: &'a Classes,
    /// The threads that serve everybody on the nodes' network.
    pub agents: &'a Handle,
    /// What is answered is counted there.
    pub metrics: &'a Metrics,
    /// Ends them.
    pub stop: &'a CancellationToken,
}

impl Listeners<'_> {
    /// Serve the API on every configured address, and on the operators' socket where no users are configured: `app` on
    /// loopback, `agents_app` on the threads of agents.
    pub async fn serve_all(
        &self,
        identity: &Identity,
        app: App,
        agents_app: App,
        services: &mut Services,
    ) -> Result<()> {
        let Self { config, classes, agents, metrics, stop } = self;
        let operators = Operators::of(config)?;
        let site = || OriginCheck::new(&config.api.allowed_hosts, &config.api.public_endpoint);
        let own = Handle::current();
        let mut serve = |runtime: &Handle, listener: Listener, tls, router, clients, place: String| {
            let router = metrics.router(router);
            let (server, stopped) = (Server { listener, tls, router, clients }, (*stop).clone());
            services.start_on(runtime, format!("the API on {place}"), async move {
                server.run(stopped, DRAIN).await;
                Ok(())
            });
        };
        for address in &config.api.listen {
            let auth = operators.at(address.ip());
            let accepts = match &auth {
                Auth::NoAuth => "for every client that reaches it".to_owned(),
                Auth::Agents => "for agents only".to_owned(),
                Auth::Basic(_) => "for agents, and for users with a password".to_owned(),
                Auth::Token(token) => format!("for agents, and with the token in {}", token.path().display()),
                Auth::Socket => "for its user and group".to_owned(),
            };
            let plain = address.ip().is_loopback();
            let (scope, router) = match plain {
                true => (ListenerScope::Loopback, api::loopback_router(app.clone(), auth, site())),
                false => (ListenerScope::Network, api::guarded_router(agents_app.clone(), auth)),
            };
            let router = web_page::in_front_of(config, scope, router);
            let runtime = if plain { &own } else { *agents };
            let listener = agent_runtime::bind(runtime, *address)
                .await
                .with_context(|| format!("api.listen {address}"))?;
            let bound = listener.local_addr()?;
            if plain {
                app.sessions.serve_at(format!("http://{bound}"));
            }
            let (tls, clients) = match plain {
                true => (None, classes.operators()),
                false => (Some(identity.server()?), classes.agents()),
            };
            serve(runtime, listener.into(), tls, router, clients, bound.to_string());
            tracing::info!("API on {}://{bound}, {accepts}", if plain { "http" } else { "https" });
        }
        if let Operators::Token(_) = operators {
            let path = config.operator_socket();
            let router = api::loopback_router(app, Auth::Socket, site());
            let listener = operator_socket::bind(&path)?;
            serve(&own, listener.into(), None, router, classes.operators(), path.display().to_string());
            tracing::info!("API on unix:{}, for its user and group", path.display());
        }
        Ok(())
    }
}

/// How operators authenticate.
enum Operators {
    NoAuth,
    Token(Arc<OperatorToken>),
    Basic(Arc<Users>),
}

impl Operators {
    fn of(config: &Config) -> Result<Self> {
        Ok(match config.api.auth_strategy {
            AuthStrategy::Noauth => Self::NoAuth,
            AuthStrategy::HttpBasic => Self::Basic(Arc::new(config.api.users().context("configuration")?)),
            AuthStrategy::Token => Self::Token(Arc::new(operator_token::load_or_make(&config.state_dir)?)),
        })
    }

    /// The clients that an address accepts. Off loopback only users with a password are operators.
    fn at(&self, address: IpAddr) -> Auth {
        match self {
            Self::Basic(users) => Auth::Basic(users.clone()),
            _ if !address.is_loopback() => Auth::Agents,
            Self::NoAuth => Auth::NoAuth,
            Self::Token(token) => Auth::Token(token.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_users_no_address_off_loopback_accepts_operators() {
        let token = Arc::new(OperatorToken::new("token".to_owned(), "/file".into()));
        let file = tempfile::NamedTempFile::new().unwrap();
        let users = Operators::Basic(Arc::new(Users::open(file.path().to_owned(), None).unwrap()));
        for (address, is_loopback) in [
            ("127.0.0.1", true),
            ("127.3.2.1", true),
            ("::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("192.0.2.1", false),
        ] {
            let address = address.parse().unwrap();
            let (open, guarded) =
                (Operators::NoAuth.at(address), Operators::Token(token.clone()).at(address));
            assert_eq!(matches!(open, Auth::NoAuth), is_loopback, "{address}");
            assert_eq!(matches!(open, Auth::Agents), !is_loopback, "{address}");
            assert_eq!(matches!(guarded, Auth::Token(_)), is_loopback, "{address}");
            assert_eq!(matches!(guarded, Auth::Agents), !is_loopback, "{address}");
            assert!(matches!(users.at(address), Auth::Basic(_)));
        }
    }
}
