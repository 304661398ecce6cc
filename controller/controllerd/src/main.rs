//! `anneal-controller`: log, configuration, wiring, run, drain.

mod agent_runtime;
mod backup;
mod boot_contents;
mod boot_services;
mod certificate_key;
mod config;
mod connections;
mod database;
mod database_check;
mod database_key;
mod database_url;
mod directory;
mod discovery_boots;
mod drivers;
mod event_retention;
mod firmware_choices;
mod identity;
mod image_store;
mod listeners;
mod log;
mod log_limit;
mod metrics_listener;
mod migrate;
mod newest_epoch;
mod node_media;
mod notify;
mod operator_socket;
mod operator_token;
mod predictions;
mod restored;
mod services;
mod state_dir;
mod web_page;

use anyhow::{Context, Result};
use boot_contents::BootContents;
use boot_services::BootServices;
use clap::Parser;
use conductor::agent_client::AgentClient;
use conductor::{CertificateIssuer, Conductor, LiveExecutor};
use config::Config;
use database::Database;
use listeners::Listeners;
use log_limit::LogLimit;
use metrics::Metrics;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use node_media::NodeMedia;
use notify::Supervisor;
use services::Services;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{Clock, Members, SystemClock};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use webhooks::Dispatcher;

/// Gives memory back to the system after many requests: glibc's allocator keeps it (docs/decisions/0032).
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Limit of one HTTP call to an agent; erase steps run asynchronously, so a call is short.
const AGENT_CALL: Duration = Duration::from_secs(60);
/// Name of the service that drives nodes.
const CONDUCTOR: &str = "the conductor";
/// How long passes under way may take after a signal to stop.
const DRAIN: Duration = Duration::from_secs(20);
/// Name of the service that delivers events.
const WEBHOOKS: &str = "the webhooks";
/// How long deliveries under way may take after that; with [`DRAIN`], less than systemd waits (`TimeoutStopSec`).
const HAND_OVER: Duration = Duration::from_secs(5);

/// Owns the provision state machine of bare-metal nodes, their step catalogue and their power.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Configuration file (TOML). Without it every setting has its default.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Check the configuration, report the first error or "configuration is good", and exit.
    #[arg(long)]
    check_config: bool,
    #[command(subcommand)]
    command: Option<backup::Command>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let config = match &args.config {
        Some(path) => Config::read(path).with_context(|| format!("configuration {}", path.display()))?,
        None => Config::default(),
    };
    config.check().context("configuration")?;
    if args.check_config {
        println!("configuration is good");
        return Ok(());
    }
    if let Some(command) = &args.command {
        return command.run(&config);
    }
    let limit = log::start(&config.log, config.log_format)?;
    log::abort_with_the_writer();
    without_core_dumps().context("core dumps")?;
    config.connections.raise_descriptor_limit().context("limit of open files")?;
    let agents = agent_runtime::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run(config, agents.handle(), limit));
    agents.shutdown_background();
    ended
}

/// No crash writes this process's memory, which holds passwords, to a disk; nor can another process of the same user read it.
fn without_core_dumps() -> nix::Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    prctl::set_dumpable(false)
}

async fn run(config: Config, agents_runtime: &Handle, limit: LogLimit) -> Result<()> {
    state_dir::prepare(&config.state_dir)?;
    let (is_upgrade, key) = (operator_token::is_upgrade(&config), database_key::load_or_make(&config).await?);
    let database = Database::open(&config, &key).await?;
    newest_epoch::check(&config.state_dir, &database).await?;
    let own_store = database.store();
    let identity = identity::load_or_make(&config)?;
    certificate_key::complete(&config.state_dir, &*own_store).await?;
    let certificate_key = certificate_key::load_or_make(&config.state_dir)?;
    let (stop, mut services) = (CancellationToken::new(), Services::default());

    // One for all: the conductor lets it follow the machine's clock.
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let members = Members::alone(&config.name())
        .with_drivers(config.enabled_hardware_types.clone())
        .reached_at(boot_services::agent_api(&config, &identity));
    let metrics = Metrics::new(clock.clone(), members.clone());
    let (store, for_agents) = (metrics.store(own_store.clone()), metrics.store(database.for_agents()));
    let images = image_store::open(&config, &identity, store.clone(), members.clone())?;
    let (agents, remarks) = (agent_client(&config, &images), store::Remarks::default());
    let (bmcs, media) = (open_bmcs(&config), NodeMedia::of(&config, members.agent_api()));
    let contents = BootContents::of(&config, &for_agents, &clock, &members, &remarks)?;
    let app = api::App {
        store: store.clone(),
        clock: clock.clone(),
        drivers: Arc::new(api_drivers(&config, &bmcs, &agents, &media).booting(contents.clone())),
        bundles: Some(Arc::new(open_bundles(&config)?)),
        images,
        certificate_key: Some(certificate_key.public().to_string()),
        lock_waits: api::LockWaits::default(),
        remarks,
        members: members.clone(),
        events: api::EventFeed::new(config.events.streams(config.connections.operators), stop.clone()),
        nodes: api::NodeFeed::new(config.ui.streams(config.connections.operators), stop.clone()),
        sessions: web_page::sessions(&config, &key),
        metrics: metrics_listener::text(&metrics),
        challenge_key: api::ChallengeKey::default(),
        settings: config.api_settings(),
    };
    let classes = config.connections.classes();
    let agents_app = web_page::off_loopback(&config, &app, for_agents);
    let listeners = Listeners {
        config: &config,
        classes: &classes,
        agents: agents_runtime,
        metrics: &metrics,
        stop: &stop,
    };
    metrics_listener::serve_all(&listeners, &identity, own_store, &mut services).await?;
    listeners.serve_all(&identity, app, agents_app, &mut services).await?;
    let boot = BootServices {
        config: &config,
        contents,
        clients: classes.boot(),
        runtime: agents_runtime,
        stop: &stop,
        members: members.clone(),
        metrics: &metrics,
    };
    boot_services::start(boot, &mut services).await?;

    let executor = LiveExecutor::new(Arc::new(bmcs), agents, clock.clone(), config.conductor())
        .inserting(Arc::new(media));
    let executor = metrics.executor(Arc::new(executor));
    let issuer = CertificateIssuer::new(certificate_key, &config.name()).at(&config.conductor.site);
    let conductor = Conductor::new(store, executor, clock.clone(), config.conductor.clone(), members, issuer);
    conductor.observe(metrics.observer());
    let conducting = conductor.run(stop.clone());
    services.start(CONDUCTOR, async move {
        conducting.await;
        Ok(())
    });

    if is_upgrade {
        operator_token::explain();
    }
    deliver_events(&config, &database, &clock, &stop, &mut services)?;
    keep_up(&config, database, clock, limit, &mut services);
    tracing::info!(pin = %identity.pin(), "anneal-controller {} is ready", env!("CARGO_PKG_VERSION"));
    serve(services, &stop).await
}

/// Deliver events to the webhooks of the configuration.
fn deliver_events(
    config: &Config,
    database: &Database,
    clock: &Arc<dyn Clock>,
    stop: &CancellationToken,
    services: &mut Services,
) -> Result<()> {
    let mut dispatchers = JoinSet::new();
    for (name, webhook) in &config.webhooks {
        let dispatcher =
            Dispatcher::new(name, webhook.clone(), database.store(), clock.clone(), &config.name())
                .map_err(|why| anyhow::anyhow!("webhooks.{name}: {why}"))?;
        dispatchers.spawn(dispatcher.run(stop.clone()));
    }
    if !dispatchers.is_empty() {
        services.start(WEBHOOKS, async move {
            while let Some(ended) = dispatchers.join_next().await {
                ended?;
            }
            Ok(())
        });
    }
    Ok(())
}

/// What goes on alongside the work: the log, old events, the note of the newest epoch, the check of the database.
fn keep_up(
    config: &Config,
    database: Database,
    clock: Arc<dyn Clock>,
    limit: LogLimit,
    services: &mut Services,
) {
    services.start("the limit on the log", limit.report());
    let (noted, state_dir) = (database.clone(), config.state_dir.clone());
    services
        .start("the note of the newest epoch", async move { newest_epoch::keep(&state_dir, &noted).await });
    let retention = event_retention::keep(database.store(), clock, config.events.kept());
    services.start("the deletion of old events", retention);
    services.start("the check of the database", database.check(config.database_check_hours));
}

/// Serve until there is a reason to stop, and stop.
async fn serve(mut services: Services, stop: &CancellationToken) -> Result<()> {
    let supervisor = Supervisor::from_environment().context("NOTIFY_SOCKET")?;
    supervisor.ready();
    let ended = first_reason_to_stop(&supervisor, &mut services).await?;
    if let Err(error) = &ended {
        tracing::error!("{error:#}");
    }
    supervisor.stopping();
    tracing::info!("stopping: passes under way are finished first");
    stop.cancel();
    if !services.drain(CONDUCTOR, DRAIN).await {
        tracing::warn!("passes were still under way after {DRAIN:?}; they go on at the next start");
    }
    if !services.drain(WEBHOOKS, HAND_OVER).await {
        tracing::warn!(
            "events were still being delivered; another controller goes on when this one's time is over"
        );
    }
    ended
}

fn open_bmcs(config: &Config) -> bmc::Builtin {
    if config.bmc.networks.is_empty() {
        tracing::info!("bmc.networks is not set: the controller connects to BMCs at every address");
    }
    bmc::Builtin::new(config.bmc.clone()).enabling(&config.enabled_hardware_types)
}

/// What the API asks of drivers.
fn api_drivers(
    config: &Config,
    bmcs: &bmc::Builtin,
    agents: &AgentClient,
    media: &NodeMedia,
) -> drivers::BmcDrivers {
    let (enabled, settings) = (&config.enabled_hardware_types, config.conductor.clone());
    drivers::BmcDrivers::new(enabled, bmcs.clone(), settings, agents.clone()).serving(media.clone())
}

/// What calls agents.
fn agent_client(config: &Config, images: &images::ImageStore) -> AgentClient {
    AgentClient::new(AGENT_CALL)
        .requiring(config.conductor.require_verification)
        .choosing(config.conductor.root_disk_rules())
        .serving(images.clone())
        .hearing_at(&config.hello_url())
}

fn open_bundles(config: &Config) -> Result<api::BundleStore> {
    let directory = config.bundle_directory();
    let trust = config.bundles.trust().context("configuration")?;
    api::BundleStore::open(directory.clone(), trust, config.bundles.max_mib << 20)
        .with_context(|| format!("bundles.directory {}", directory.display()))
}

/// Waits for a signal or for the first service that ends; the latter is the error inside.
async fn first_reason_to_stop(supervisor: &Supervisor, services: &mut Services) -> Result<Result<()>> {
    let alive = async {
        supervisor.keep_alive().await;
        std::future::pending::<()>().await;
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        error = services.first_end() => Err(error),
        () = alive => Ok(()),
    })
}
