//! Ironic and anneal-agent, which serves TLS with its own certificate.
//!
//! ```text
//!   node        story
//!   automated   inspection; automated cleaning with a reboot in it, after which a hardware manager is another one; service
//!   by-hand     manual cleaning; the operator's settings and root device hints
//!   failures    a step that fails, with the agent's logs; aborts
//! ```
//!
//! Together they run every step that the agents advertise. Not advertised, so not run: `apply_configuration_in_band`, which is
//! there where the kernel changes BIOS settings.

mod automated;
mod by_hand;
mod failures;

use super::{Enrolled, start_ironic};
use crate::World;
use crate::agents::Kind;
use crate::disk::LoopDisk;
use crate::process::check;
use crate::vendor;
use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread::ScopedJoinHandle;

/// What an operator may have set in Ironic for its agents, each unlike its default.
const SETTINGS: &str = "\
[agent]
deploy_logs_collect = on_failure
deploy_logs_storage_backend = local
deploy_logs_local_path = @LOGS@
[conductor]
clean_step_priority_override = deploy.restart:7
[deploy]
shred_random_overwrite_iterations = 1
shred_final_overwrite_with_zeros = False
disk_erasure_concurrency = 3
erase_skip_read_only = True
enable_ata_secure_erase = False
enable_nvme_secure_erase = False
continue_if_disk_secure_erase_fails = True
";

/// Large enough for a GPT and what shows that its data is gone.
const DISK_SIZE: u64 = 16 << 20;

type Names = BTreeSet<String>;

/// What happens to one node; gives names of steps.
type Story = fn(&World, &Enrolled) -> Result<Names>;

pub fn run(world: &World) -> Result<()> {
    parameters_are_documented(world).context("kernel parameters")?;
    let settings = SETTINGS.replace("@LOGS@", &world.dir.join("logs").display().to_string());
    let (ironic, network) = start_ironic(world, &settings)?;
    let story = |name: &'static str, mac: &'static str, run: Story| {
        let world = World { dir: world.dir.join(name), ..world.clone() };
        let (network, endpoint) = (&network, &ironic.endpoint);
        move || -> Result<Names> {
            std::fs::create_dir(&world.dir)?;
            vendor::install(&world.dir)?;
            let disk = LoopDisk::sized(&world.dir, "disk", DISK_SIZE)?;
            let interfaces = &["inspect=agent"];
            let node =
                Enrolled::called(name, mac, disk, &world, endpoint, network, Kind::Anneal, interfaces)?;
            let names = run(&world, &node).context(name)?;
            // Ironic touches the power state twice when it starts a node that is off, so boots are not counted.
            node.bmc.stop()?;
            Ok(names)
        }
    };
    // Side by side, since an agent of Ironic's waits five seconds after each step.
    let (ran, advertised) = std::thread::scope(|scope| {
        let ran = [
            scope.spawn(story("by-hand", "52:54:00:c0:47:02", by_hand::story)),
            scope.spawn(story("failures", "52:54:00:c0:47:03", failures::story)),
        ];
        let first = scope.spawn(story("automated", "52:54:00:c0:47:01", automated::story));
        let ended = |thread: ScopedJoinHandle<Result<Names>>| match thread.join() {
            Ok(names) => names,
            Err(_) => Err(anyhow!("a story panicked")),
        };
        let ran = ran.map(ended);
        let advertised = ended(first)?;
        let mut all = Names::from(automated::STEPS.map(str::to_owned));
        for names in ran {
            all.extend(names?);
        }
        anyhow::Ok((all, advertised))
    })?;
    // Nothing that Ironic knows of the agents was left out.
    ensure!(advertised == ran, "of {advertised:?} these ran: {ran:?}");
    Ok(())
}

/// What the installed ironic-python-agent reads from the kernel command line is on our page, obeyed or not.
fn parameters_are_documented(world: &World) -> Result<()> {
    let page = include_str!("../../../../../docs/compatibility-agent.md");
    let python = world.peers.program("ipa", "python3");
    let home = python.parent().and_then(Path::parent).context("where ironic-python-agent is")?;
    let mut grep = Command::new("grep");
    grep.args([
        "-rhoE",
        "--include=*.py",
        "--exclude-dir=tests",
        r"\.get\(\s*'ipa-[a-z0-9-]+'|^ +'ipa-[a-z0-9-]+'",
    ]);
    let output = check(grep.arg(home.join("lib")))?;
    let found = String::from_utf8(output.stdout)?;
    let names: BTreeSet<_> = found.split('\'').filter(|word| word.starts_with("ipa-")).collect();
    ensure!(names.len() > 35, "only {names:?} were found");
    let missing: Vec<_> = names.iter().filter(|name| !page.contains(&format!("| `{name}` |"))).collect();
    ensure!(missing.is_empty(), "docs/compatibility-agent.md does not list {missing:?}");
    Ok(())
}

/// A step of ours or of the vendor's. Ironic asks agents for clean steps of no interface but this one and `raid`.
fn step(name: &str) -> Value {
    json!({"interface": "deploy", "step": name})
}

/// What all agents of the scenario have said so far.
fn agent_logs(dir: &Path) -> Result<String> {
    let mut all = String::new();
    for boot in 1.. {
        let Ok(log) = std::fs::read_to_string(dir.join(format!("agent-{boot}.log"))) else { break };
        all.push_str(&log);
    }
    ensure!(!all.is_empty(), "no agent has said anything");
    Ok(all)
}
