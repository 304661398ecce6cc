//! `anneal-agent`: log, config, build, wait, drain.

use agentd::config::{Config, ConfigError, Environment, HELP};
use agentd::executor::Executor;
use agentd::logging::LogRing;
use agentd::login::{ADD_ON, LoginProgram, LoginService, NoLogin};
use agentd::signer::Signer;
use agentd::state::{Discover, State};
use agentd::tls::Trust;
use agentd::{config, inventory, ramdisk, run, signer};
use block::Filter;
use hwm_generic::{GenericHardwareManager, MirrorTrust};
use hwm_host::{Externals, Limits};
use hwm_sdk::HardwareManager;
use ramdisk_init::{Exit, Storage};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == signer::WORD) {
        return signer::serve();
    }
    let logs = LogRing::default();
    if std::process::id() == 1 {
        return ramdisk::init(&logs, live);
    }
    match config::parse(&Environment::of_this_process()) {
        Ok(config) => {
            logs.install(config.debug);
            match live(&config, &logs, None) {
                Ok(Some(exit)) if config.ramdisk => ramdisk_init::end(exit),
                Ok(_) => ExitCode::SUCCESS,
                Err(error) => {
                    tracing::error!(error, "giving up");
                    ExitCode::FAILURE
                }
            }
        }
        Err(ConfigError::Help) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("anneal-agent: {error}");
            ExitCode::from(2)
        }
    }
}

/// The agent's life; errors are text, since they can only be logged here.
fn live(config: &Config, logs: &LogRing, storage: Option<Arc<Storage>>) -> Result<Option<Exit>, String> {
    if !config.ignored.is_empty() {
        tracing::warn!(parameters = ?config.ignored, "kernel parameters not obeyed");
    }
    // Before anything of a disk or of the network is read.
    let signer = signer();
    let managers = managers(config);
    let externals = Arc::new(externals(config, &managers));
    let discover = discover(config, externals.clone());
    let state = State::new(signer, managers, discover, logs.clone(), login(config), config.ramdisk);
    let state = state.searching(storage);
    state.set_externals(externals.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let result = runtime.block_on(async {
        let stop = CancellationToken::new();
        if !config.init {
            stop_on_signals(&stop).map_err(|error| format!("signals: {error}"))?;
        }
        run::run(config, Executor::new(state), stop).await.map_err(|error| error.to_string())
    });
    // A step that still runs must not hold the end up.
    runtime.shutdown_background();
    externals.shut_down();
    result
}

/// What signs the evidence of erases.
fn signer() -> Option<Signer> {
    let own = Path::new("/proc/self/exe");
    Signer::start(own).inspect_err(|error| tracing::error!(%error, "erases will not be certified")).ok()
}

/// Those of vendors, where there are any. Nothing is started yet.
fn externals(config: &Config, own: &[Arc<dyn HardwareManager>]) -> Externals {
    let sources = config.external.as_deref().map(hwm_host::read).unwrap_or_default();
    let place = if config.ramdisk { PathBuf::from(ramdisk_init::FETCHED) } else { std::env::temp_dir() };
    Externals::new(sources, &hwm_host::step_names(own), &place, Limits::default())
}

/// The one place where hardware managers of the agent itself are listed.
fn managers(config: &Config) -> Vec<Arc<dyn HardwareManager>> {
    vec![Arc::new(generic(config))]
}

/// The ramdisk's may take down what uses the disks; any other must not.
fn generic(config: &Config) -> GenericHardwareManager {
    let generic = GenericHardwareManager::new(filter(config)).trusting(mirrors(config));
    if config.ramdisk {
        generic.in_the_ramdisk().writing_variables(|work| ramdisk_init::with_writable_efi_variables(work))
    } else {
        generic
    }
}

/// Which mirrors of images are trusted where the controller does not say, as in ironic-python-agent. A pin is the controller's.
fn mirrors(config: &Config) -> MirrorTrust {
    match &config.trust {
        Some(Trust::CaFile(path)) => MirrorTrust::CaFile(path.clone()),
        Some(Trust::Insecure) => MirrorTrust::Any,
        Some(Trust::Pins(_)) | None => MirrorTrust::None,
    }
}

/// The login service of a rescued node: the configured program, or that of the archive of rescue boots, or none.
fn login(config: &Config) -> Box<dyn LoginService> {
    let of_this_boot = || (config.ramdisk && Path::new(ADD_ON).is_file()).then(|| PathBuf::from(ADD_ON));
    match config.login_program.clone().or_else(of_this_boot) {
        Some(program) => Box::new(LoginProgram::new(program, config.rescue_password_file.clone())),
        None => Box::new(NoLogin),
    }
}

/// Outside the ramdisk no disk exists but those that were named: none when none was.
fn filter(config: &Config) -> Filter {
    if config.ramdisk && config.only_devices.is_empty() {
        return Filter::All;
    }
    Filter::Only(config.only_devices.clone())
}

fn discover(config: &Config, externals: Arc<Externals>) -> Discover {
    let generic = generic(config);
    let config = config.clone();
    Box::new(move || {
        let disks = generic.disks().unwrap_or_else(|error| {
            tracing::error!(error = block::fault::chain(&error), "the disks cannot be listed");
            Vec::new()
        });
        let mut inventory = inventory::collect(&config, disks);
        externals.complete(&mut inventory);
        inventory
    })
}

fn stop_on_signals(stop: &CancellationToken) -> std::io::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopped by a signal");
        stop.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agentd::config::{Environment, parse};

    fn outside(arguments: &[&str]) -> Config {
        let arguments = [&["--api-url=http://127.0.0.1:6385"], arguments].concat();
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        parse(&Environment { arguments, ..Environment::default() }).expect("valid")
    }

    fn ramdisk(parameters: &str) -> Config {
        let environment = Environment {
            kernel_command_line: format!("ipa-api-url=http://192.0.2.1:6385 {parameters}"),
            is_init: true,
            root_is_initramfs: true,
            ..Environment::default()
        };
        parse(&environment).expect("valid")
    }

    #[test]
    fn outside_the_ramdisk_no_disk_exists_but_those_named() {
        assert_eq!(filter(&outside(&[])), Filter::Only(Vec::new()));
        let named = Filter::Only(vec!["/dev/loop7".into()]);
        assert_eq!(filter(&outside(&["--only-device=/dev/loop7"])), named);
        assert_eq!(filter(&ramdisk("anneal.only-device=/dev/loop7")), named);
        assert_eq!(filter(&ramdisk("")), Filter::All);
    }

    #[test]
    fn only_the_ramdisks_agent_takes_down_what_uses_its_disks() {
        assert!(generic(&ramdisk("")).takes_down());
        assert!(!generic(&outside(&["--only-device=/dev/loop7"])).takes_down());
    }
}
