//! Steps of the interfaces, which the controller runs itself.

use crate::bmc::SimBmc;
use crate::ground_truth::{By, End};
use crate::held;
use crate::machine::Machine;
use crate::offers::Offer;
use crate::world::World;
use bmc::{BmcError, ErrorKind, StepCall, StepEnd};
use model::{CatalogueStep, StepKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::sleep;

/// The out-of-band steps of a machine by kind.
pub fn declared(machine: &Machine) -> BTreeMap<StepKind, Vec<CatalogueStep>> {
    let of = |kind: StepKind| {
        let steps = machine.out_of_band.iter().filter_map(|offer| offer.wire(kind));
        let known = steps.filter_map(|mut step| {
            let fields = step.as_object_mut()?;
            fields.insert("in_band".to_owned(), false.into());
            fields.insert("requires_ramdisk".to_owned(), false.into());
            fields.insert("provider".to_owned(), "sim".into());
            serde_json::from_value(step).ok()
        });
        (kind, known.collect())
    };
    StepKind::ALL.map(of).into()
}

/// Run a step, or ask how far it is.
pub async fn run(
    world: &Arc<World>,
    bmc: &SimBmc,
    machine: &Arc<Machine>,
    call: &StepCall<'_>,
) -> Result<StepEnd, BmcError> {
    let fails = |kind: ErrorKind, text: String| BmcError::new(kind, &machine.name, "run a step", text);
    let Some(offer) = machine.out_of_band.iter().find(|offer| is(offer, call)).cloned() else {
        return Err(fails(ErrorKind::Step, format!("there is no step {}.{}", call.interface, call.step)));
    };
    let id = call.command_id.to_owned();
    if call.polling {
        return bmc.request("ask for a step", move |world, machine| poll(world, machine, &offer, &id)).await;
    }
    // Refused before it begins, so that nothing has been done.
    bmc.order("begin a step", |_, _| ()).await?;
    let by = if offer.outside { By::Bmc } else { By::Controller(bmc.host()) };
    world.step_begins(machine, &id, &offer, by);
    let faults = world.faults();
    let takes = world.rng.seconds(offer.takes.clone());
    if offer.outside {
        machine.state().outside.push((id, world.now().after(takes)));
        return Ok(StepEnd::Running("begun".to_owned()));
    }
    // Ends it when this is dropped: the lease was lost, or the controller died.
    let _dropped = Dropped { world, machine, id: &id };
    sleep(takes).await;
    bmc.acts("end a step").await;
    if world.rng.chance(faults.step_fails) {
        held(&world.ground_truth).ended(machine.index, &id, End::Failed, world.now());
        let number = world.happened(machine, &format!("{} fails", offer.label()));
        return Err(fails(ErrorKind::Step, format!("step {} broke {number}", offer.label())));
    }
    if world.rng.chance(faults.bmc) {
        // It has done its work, and the connection breaks before it can say so.
        effect(machine, &offer);
        held(&world.ground_truth).ended(machine.index, &id, End::Interrupted, world.now());
        let number = world.happened(machine, "its BMC broke the connection after a step");
        return Err(fails(ErrorKind::Timeout, format!("the connection broke {number}")));
    }
    effect(machine, &offer);
    held(&world.ground_truth).ended(machine.index, &id, End::Succeeded, world.now());
    Ok(StepEnd::Done(json!(format!("{} done", offer.label()))))
}

/// A step of a controller that is dropped where it waits is cut short.
struct Dropped<'a> {
    world: &'a World,
    machine: &'a Machine,
    id: &'a str,
}

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        let at = self.world.now();
        held(&self.world.ground_truth).ended(self.machine.index, self.id, End::Interrupted, at);
    }
}

fn is(offer: &Offer, call: &StepCall<'_>) -> bool {
    offer.interface == call.interface && offer.name == call.step
}

fn poll(world: &World, machine: &Machine, offer: &Offer, id: &str) -> StepEnd {
    let known = machine.state().outside.iter().find(|(of, _)| of == id).map(|(_, until)| *until);
    let Some(until) = known else {
        world.violated("polling_asks_for_what_was_begun", format!("{} knows no step {id}", machine.name));
        return StepEnd::Running("nothing".to_owned());
    };
    if until > world.now() {
        return StepEnd::Running("going on".to_owned());
    }
    effect(machine, offer);
    held(&world.ground_truth).ended(machine.index, id, End::Succeeded, world.now());
    StepEnd::Done(Value::Null)
}

fn effect(machine: &Machine, offer: &Offer) {
    match offer.name.as_str() {
        "erase_storage" => machine.state().erase(0),
        "deploy" => machine.state().deploy(),
        _ => {}
    }
}
