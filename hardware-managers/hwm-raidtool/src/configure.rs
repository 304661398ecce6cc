//! Making and removing volumes.

use crate::target::{Volume, parse, plan};
use crate::tool::Tool;
use crate::topology::{Topology, read};
use agent_protocol::progress::Progress;
use hwm_sdk::protocol::{Level, LogicalDisk};
use hwm_sdk::{StepCall, StepContext, StepError, StepOutcome};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// How often a controller is asked how far it is.
const POLL: Duration = Duration::from_millis(100);

/// What is to be made.
pub struct Order<'a> {
    /// `target_raid_config`, and what it is called in errors.
    pub target: (&'static str, &'a Value),
    /// Volumes for the operating system.
    pub root: bool,
    /// The others.
    pub nonroot: bool,
    /// Delete what is there before.
    pub delete_existing: bool,
}

/// Make the volumes of an order and initialise each. Started again it makes only those that are missing, and waits for
/// those that are not initialised yet.
///
/// # Errors
/// [`StepError::Argument`] before anything is touched; else what went wrong, with what was made in the report.
pub fn create(tool: &Tool, order: &Order, context: &StepContext) -> Result<StepOutcome, StepError> {
    let wrong = |problem| StepError::Argument { name: order.target.0.to_owned(), problem };
    let mut target = parse(order.target.1).map_err(wrong)?;
    target.logical_disks.retain(|disk| if disk.is_root_volume { order.root } else { order.nonroot });
    if target.logical_disks.is_empty() {
        return Err(wrong("there is no volume in it to be made".into()));
    }
    let topology = read(tool)?;
    let deleted = context.checkpoint().is_some_and(|saved| saved["deleted"] == true);
    let as_is = plan(&target, &topology, false);
    let complete = as_is.as_ref().is_ok_and(|volumes| {
        volumes.len() == topology.raid.logical_disks.len()
            && volumes.iter().all(|volume| present(&topology, volume).is_some())
    });
    let volumes = if order.delete_existing && !complete && !deleted {
        let afresh = plan(&target, &topology, true).map_err(wrong)?;
        delete(tool, &topology)?;
        // Started again it must not delete what it has made by then.
        context.save_checkpoint(&json!({"deleted": true}));
        afresh
    } else {
        as_is.map_err(wrong)?
    };
    for (index, volume) in volumes.iter().enumerate() {
        let made = make(tool, volume, context, (index, volumes.len()));
        made.map_err(|error| with_report(error, tool, &volumes[..index]))?;
    }
    progress(context, 100, "all volumes are there");
    Ok(StepOutcome::Done(report(&read(tool)?, &volumes)))
}

/// The id of the volume when it is there as it shall be.
fn present<'a>(topology: &'a Topology, volume: &Volume) -> Option<&'a str> {
    let is_it = |disk: &&LogicalDisk| {
        disk.controller == volume.controller
            && topology.name_of(disk) == volume.name
            && disk.raid_level == volume.raid_level
            && disk.physical_disks == volume.drives
    };
    topology.raid.logical_disks.iter().find(is_it).map(|disk| disk.id.as_str())
}

fn make(
    tool: &Tool,
    volume: &Volume,
    context: &StepContext,
    (index, count): (usize, usize),
) -> Result<(), StepError> {
    if context.is_cancelled() {
        return Err(StepError::Cancelled { report: Value::Null });
    }
    let id = match present(&read(tool)?, volume) {
        Some(id) => id.to_owned(),
        None => add(tool, volume, context)?,
    };
    let path = format!("/c{}/v{id}", volume.controller);
    loop {
        let answers = tool.ask(&[&path, "show", "init"])?;
        let row = answers.first().map(|answer| answer.data[0].clone()).unwrap_or_default();
        let done = row["Progress%"].as_u64().unwrap_or(100).min(100);
        let percent = (index as u64 * 100 + done) / count as u64;
        progress(
            context,
            u8::try_from(percent).unwrap_or(100),
            &format!("initialising volume {}", volume.name),
        );
        if row["Status"] != "In progress" {
            return Ok(());
        }
        if context.is_cancelled() {
            tool.ask(&[&path, "stop", "init"])?;
            // A volume that is half initialised is no volume.
            tool.ask(&[&path, "del", "force"])?;
            return Err(StepError::Cancelled { report: Value::Null });
        }
        thread::sleep(POLL);
    }
}

/// Make the volume, begin to initialise it, and return its id.
fn add(tool: &Tool, volume: &Volume, context: &StepContext) -> Result<String, StepError> {
    let controller = format!("/c{}", volume.controller);
    let size = volume.size_gib.map_or_else(|| "size=all".to_owned(), |gib| format!("size={gib}GB"));
    let (kind, name) = (format!("type={}", volume.kind), format!("names={}", volume.name));
    let drives = format!("drives={}", volume.drives.join(","));
    context.log(Level::Info, &format!("making volume {} of {}", volume.name, volume.drives.join(", ")));
    tool.ask(&[&controller, "add", "vd", &kind, &size, &name, &drives])?;
    let topology = read(tool)?;
    let id = present(&topology, volume).ok_or_else(|| {
        let reason = format!("volume {} was made, and is not there as it was asked for", volume.name);
        StepError::Failed { reason, report: Value::Null }
    })?;
    tool.ask(&[&format!("{controller}/v{id}"), "start", "init", "full"])?;
    Ok(id.to_owned())
}

fn progress(context: &StepContext, percent: u8, text: &str) {
    context.update(|present| {
        // Nothing goes back: a volume that is made again begins anew.
        let percent = percent.max(present.percent.unwrap_or_default());
        *present = Progress { percent: Some(percent), text: Some(text.to_owned()), ..Progress::default() };
    });
}

/// Remove every volume.
///
/// # Errors
/// When the tool cannot, or when one is there still.
pub fn delete_all(tool: &Tool) -> Result<StepOutcome, StepError> {
    let before = read(tool)?;
    delete(tool, &before)?;
    let left = read(tool)?;
    if let Some(disk) = left.raid.logical_disks.first() {
        let reason = format!("volume {} of controller {} is there still", disk.id, disk.controller);
        return Err(StepError::Failed { reason, report: json!(left.raid) });
    }
    Ok(StepOutcome::Done(json!({ "deleted": before.raid.logical_disks.len() })))
}

fn delete(tool: &Tool, topology: &Topology) -> Result<(), StepError> {
    for disk in &topology.raid.logical_disks {
        tool.ask(&[&format!("/c{}/v{}", disk.controller, disk.id), "del", "force"])?;
    }
    Ok(())
}

fn with_report(error: StepError, tool: &Tool, made: &[Volume]) -> StepError {
    let report = read(tool).map_or(Value::Null, |topology| report(&topology, made));
    match error {
        StepError::Failed { reason, .. } => StepError::Failed { reason, report },
        StepError::Cancelled { .. } => StepError::Cancelled { report },
        other => other,
    }
}

/// In the form of Ironic's `raid_config`.
fn report(topology: &Topology, volumes: &[Volume]) -> Value {
    let disks = topology.raid.logical_disks.iter();
    let entry = |volume: &Volume| {
        let id = present(topology, volume)?;
        let disk = disks.clone().find(|disk| disk.controller == volume.controller && disk.id == id)?;
        Some(json!({
            "volume_name": volume.name, "controller": volume.controller, "id": disk.id, "raid_level": volume.raid_level,
            "size_gb": disk.size_bytes >> 30, "physical_disks": disk.physical_disks,
            "is_root_volume": volume.is_root_volume, "root_device_hint": {"name": disk.device},
        }))
    };
    json!({ "logical_disks": volumes.iter().filter_map(entry).collect::<Vec<Value>>() })
}

/// An argument that is true or false.
pub fn flag(call: &StepCall, name: &str, otherwise: bool) -> bool {
    call.args.get(name).and_then(Value::as_bool).unwrap_or(otherwise)
}
