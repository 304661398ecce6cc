//! The agent's life: inspect if configured, find the controller, serve, look up, heartbeat, end on command.

use crate::boot_proof::{BootProof, Bound, Sources};
use crate::config::Config;
use crate::executor::Executor;
use crate::heartbeat::{self, HeartbeatTemplate};
use crate::http::Client;
use crate::lookup::{self, Controller, LookupRequest};
use crate::state::State;
use crate::tls::{self, TlsError};
use crate::token::Token;
use crate::{api, bundles, discovery, inspection, inventory, server};
use mac::Mac;
use ramdisk_init::Exit;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tpm::Digest;

/// Longest wait between lookups.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(60);
/// Waits stay short at first, so that a controller that is just starting finds us soon.
const GREET_INTERVAL: Duration = Duration::from_secs(10);
/// How long an inspection waits for a controller that could take the proof of this boot.
const FIRST_GREETING: Duration = Duration::from_secs(30);

/// Why the agent ended without a command to end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// TLS.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] TlsError),
    /// The listener.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Outside the ramdisk only.
    #[error("no controller knew this machine within {} s", .0.as_secs())]
    LookupTimeout(Duration),
    /// A part of the agent ended by itself.
    #[error("the agent's {0} ended unexpectedly")]
    Ended(String),
}

/// Run until a command ends the agent, or `stop`. `None` means stopped from outside.
pub async fn run(
    config: &Config,
    executor: Arc<Executor>,
    stop: CancellationToken,
) -> Result<Option<Exit>, RunError> {
    let mut tasks = JoinSet::new();
    // Not a child of `stop`: the server ends after the rest, not at the same time.
    let served = CancellationToken::new();
    let result = tokio::select! {
        () = stop.cancelled() => Ok(None),
        result = live(config, &executor, &mut tasks, &served) => result,
    };
    served.cancel();
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "the API server broke");
        }
    }
    result
}

async fn live(
    config: &Config,
    executor: &Arc<Executor>,
    tasks: &mut JoinSet<()>,
    served: &CancellationToken,
) -> Result<Option<Exit>, RunError> {
    let state = executor.state();
    let client = Client::new(config.trust.as_ref())?.filed_under(config.global_request_id.clone());
    let client = client.showing(config.boot_nonce.clone());
    if let Some(boot) = config.discovery {
        let macs = lookup_request(config, state, None).macs;
        return Ok(Some(discovery::run(config, boot, &client, state, &macs).await));
    }
    if let Some(token) = &config.agent_token {
        state.set_token(token.clone());
    }
    let first = first_proof(config, executor, &client, tasks, served).await?;
    let proved = first.as_ref().is_some_and(|(_, proved)| *proved);
    let inspected = match &config.inspection {
        Some(inspection) => {
            let boot_id = Some(state.identity().boot_id.as_str()).filter(|_| proved);
            inspection::inspect(&client, inspection, state, boot_id).await
        }
        None => None,
    };
    if config.api_urls.is_empty() {
        return inspected_only(config, state).await;
    }
    let Met { controller, template, proving } = match first {
        Some((met, _)) => met,
        None => {
            let controller = within(config, greet(config, &client)).await?;
            meet(config, executor, controller, tasks, served).await?
        }
    };

    let request = lookup_request(config, state, inspected);
    let own: Option<Token> = config.agent_token.clone();
    let current = Mutex::new(controller);
    let is_proved = AtomicBool::new(proved);
    let ask = async || {
        let controller = current.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A lookup that failed may have failed for want of one.
        if let Some(proving) = proving.as_ref().filter(|_| !is_proved.swap(false, Ordering::Relaxed)) {
            proving.show(&client, &controller).await;
        }
        lookup::ask_any(&client, &config.api_urls, &current, &request, own.as_ref()).await
    };
    let found = within(config, lookup::persist("lookup", LOOKUP_INTERVAL, ask)).await?;
    let controller = current.into_inner().unwrap_or_else(PoisonError::into_inner);
    tracing::info!(node_uuid = found.node_uuid, extension = found.extension, "this machine is known");
    state.set_lookup_result(found.token.clone(), found.extension);
    // Before the first heartbeat: from then on the controller may ask for the steps.
    let records = bundles::load(config, &client, &controller, &found).await;
    let starting = state.clone();
    let started = tokio::task::spawn_blocking(move || {
        bundles::start(&starting, &records);
        // A command waits until all disks are there, and a controller waits for its answer.
        starting.wait_until_found();
    });
    if let Err(error) = started.await {
        tracing::error!(%error, "starting the managers of bundles broke");
    }

    let beats =
        heartbeat::run(executor.clone(), client, &config.api_urls, controller, request, found, template);
    tokio::select! {
        exit = state.exited() => Ok(Some(exit)),
        () = beats => Err(RunError::Ended("heartbeat".into())),
        _ = tasks.join_next() => Err(RunError::Ended("API server".into())),
    }
}

/// A controller that was met.
struct Met {
    controller: Controller,
    template: HeartbeatTemplate,
    /// What proves this boot, where there is something.
    proving: Option<BootProof>,
}

/// A controller that needs a proof takes no inventory without one. So with a TPM it is met before an inspection; whether it has
/// taken the proof. If it does not answer for a while, the inspection goes on as without.
async fn first_proof(
    config: &Config,
    executor: &Arc<Executor>,
    client: &Client,
    tasks: &mut JoinSet<()>,
    served: &CancellationToken,
) -> Result<Option<(Met, bool)>, RunError> {
    let has_tpm = config.tpm.as_ref().is_some_and(Sources::exist);
    if config.inspection.is_none() || config.api_urls.is_empty() || !has_tpm {
        return Ok(None);
    }
    let Ok(controller) = tokio::time::timeout(FIRST_GREETING, greet(config, client)).await else {
        return Ok(None);
    };
    let met = meet(config, executor, controller, tasks, served).await?;
    let proved = match &met.proving {
        Some(proving) => proving.show(client, &met.controller).await,
        None => false,
    };
    Ok(Some((met, proved)))
}

/// Until a controller answers.
async fn greet(config: &Config, client: &Client) -> Controller {
    let ask = || lookup::greet(client, &config.api_urls);
    let controller = lookup::persist("no controller yet", GREET_INTERVAL, ask).await;
    tracing::info!(url = %controller.url, local = %controller.local, "controller found");
    controller
}

async fn meet(
    config: &Config,
    executor: &Arc<Executor>,
    controller: Controller,
    tasks: &mut JoinSet<()>,
    served: &CancellationToken,
) -> Result<Met, RunError> {
    let (template, certificate) = serve(config, executor, &controller, tasks, served).await?;
    tracing::info!(callback_url = template.callback_url, "API served");
    let state = executor.state();
    let proving = || {
        let bound = Bound {
            addresses: lookup_request(config, state, None).macs,
            boot_id: state.identity().boot_id.clone(),
            tls_certificate: certificate?,
            evidence_key: state.signer()?.public().to_string(),
        };
        Some(BootProof { sources: config.tpm.clone()?, bound })
    };
    let proving = proving();
    Ok(Met { controller, template, proving })
}

/// Ironic boots a ramdisk for inspection without naming its API, and cuts the power when it has the inventory.
async fn inspected_only(config: &Config, state: &State) -> Result<Option<Exit>, RunError> {
    if !config.ramdisk {
        return Ok(None);
    }
    tracing::info!("no controller API is named (ipa-api-url): nothing to do until the power is cut");
    Ok(Some(state.exited().await))
}

/// In the ramdisk the agent waits without limit: a controller may come back, or forget a dead agent.
async fn within<T>(config: &Config, work: impl Future<Output = T>) -> Result<T, RunError> {
    if config.ramdisk {
        return Ok(work.await);
    }
    tokio::time::timeout(config.lookup_timeout, work)
        .await
        .map_err(|_| RunError::LookupTimeout(config.lookup_timeout))
}

async fn serve(
    config: &Config,
    executor: &Arc<Executor>,
    controller: &Controller,
    tasks: &mut JoinSet<()>,
    served: &CancellationToken,
) -> Result<(HeartbeatTemplate, Option<Digest>), RunError> {
    let listen = listen_address(config.listen, controller.local);
    let listen_error = |source| RunError::Listen { address: listen, source };
    let listener = TcpListener::bind(listen).await.map_err(listen_error)?;
    let bound = listener.local_addr().map_err(listen_error)?;
    let host = advertised_host(config, bound, controller);
    let port = config
        .advertise
        .and_then(|advertise| advertise.port)
        .or(config.advertise_port)
        .unwrap_or(bound.port());
    let own = if config.tls { Some(tls::own_certificate(host, &inventory::hostname())?) } else { None };
    let scheme = if config.tls { "https" } else { "http" };
    // agent_verify_ca exists since 1.68; an older controller answers 400 to it.
    let can_send = controller.heartbeat_version == agent_protocol::HEARTBEAT_MICROVERSION;
    let template = HeartbeatTemplate {
        callback_url: format!("{scheme}://{}", SocketAddr::new(host, port)),
        verify_ca: own.as_ref().map(|own| own.pem.clone()).filter(|_| can_send),
    };
    let certificate = own.as_ref().map(|own| own.digest);
    let router = api::router(executor.clone(), scheme);
    tasks.spawn(server::run(listener, own.map(|own| own.server), router, served.clone()));
    Ok((template, certificate))
}

/// Any address means those of both families where the controller was reached over IPv6. A kernel without IPv6 has no such
/// listener, and never gets here.
fn listen_address(configured: SocketAddr, local: IpAddr) -> SocketAddr {
    if configured.ip() == IpAddr::V4(Ipv4Addr::UNSPECIFIED) && local.to_canonical().is_ipv6() {
        return (Ipv6Addr::UNSPECIFIED, configured.port()).into();
    }
    configured
}

fn advertised_host(config: &Config, bound: SocketAddr, controller: &Controller) -> IpAddr {
    match config.advertise {
        Some(advertise) => advertise.host,
        None if bound.ip().is_unspecified() => controller.local,
        None => bound.ip(),
    }
}

/// `inspected` is the node's UUID that the inspection returned.
fn lookup_request(config: &Config, state: &State, inspected: Option<String>) -> LookupRequest {
    let mut macs: Vec<String> = config.macs.iter().map(Mac::to_string).collect();
    if macs.is_empty() {
        macs = inventory::interfaces().into_iter().map(|interface| interface.mac_address).collect();
        // The NIC that booted first: a controller that looks at one address looks at this one.
        if let Some(boot) = config.boot_mac.map(|mac| mac.to_string()) {
            macs.retain(|mac| *mac != boot);
            macs.insert(0, boot);
        }
    }
    let boot_id = Some(state.heartbeat().boot_id);
    LookupRequest { macs, node_uuid: config.node_uuid.clone().or(inspected), boot_id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_is_of_both_families_where_the_controller_is_reached_over_ipv6() {
        let listen = |configured: &str, local: &str| {
            listen_address(configured.parse().expect("an address"), local.parse().expect("an address"))
                .to_string()
        };
        assert_eq!(listen("0.0.0.0:9999", "192.0.2.5"), "0.0.0.0:9999");
        assert_eq!(listen("0.0.0.0:9999", "::ffff:192.0.2.5"), "0.0.0.0:9999");
        assert_eq!(listen("0.0.0.0:9999", "2001:db8::5"), "[::]:9999");
        assert_eq!(listen("192.0.2.5:9998", "2001:db8::5"), "192.0.2.5:9998");
    }
}
