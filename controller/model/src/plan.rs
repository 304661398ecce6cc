//! Makes the plan of a run from the steps that are offered and the steps that are asked for. Pure.

use crate::image::{BOOT_INSTANCE, CUSTOM_AGENT, DIRECT};
use crate::step::{Argument, CatalogueStep, PlannedStep, RequestedStep, StepKind};
use serde_json::{Map, Number};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The provider of the reserved steps.
const RESERVED_PROVIDER: &str = "anneal-controller";

/// Steps that the engine itself offers, on any interface (Ironic's reserved names).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// Stop in the hold state until a user says `unhold`.
    Hold,
    /// Wait for `seconds`, or without them for the next heartbeat.
    Wait,
    /// Switch the node on.
    PowerOn,
    /// Switch the node off.
    PowerOff,
    /// Reboot the node.
    Reboot,
}

impl Reserved {
    /// The step a name is reserved for.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "hold" => Self::Hold,
            "wait" => Self::Wait,
            "power_on" => Self::PowerOn,
            "power_off" => Self::PowerOff,
            "reboot" => Self::Reboot,
            _ => return None,
        })
    }

    /// The reserved step that a planned step is, or does under another name.
    pub fn of(step: &CatalogueStep) -> Option<Self> {
        match (step.provider.as_str(), step.step.as_str()) {
            _ if step.in_band => None,
            (RESERVED_PROVIDER, name) => Self::parse(name),
            (DIRECT | CUSTOM_AGENT, "tear_down_agent") => Some(Self::PowerOff),
            (DIRECT | CUSTOM_AGENT, BOOT_INSTANCE) => Some(Self::PowerOn),
            _ => None,
        }
    }
}

fn reserved(interface: &str, name: &str) -> Option<CatalogueStep> {
    let what = Reserved::parse(name)?;
    let mut args = BTreeMap::new();
    if what == Reserved::Wait {
        let schema = serde_json::json!({"type": "number", "minimum": 0, "maximum": 86400});
        let description = "How long to wait; without it, until the next heartbeat of the agent.".to_owned();
        args.insert("seconds".to_owned(), Argument { description, required: false, schema: Some(schema) });
    }
    Some(CatalogueStep {
        interface: interface.to_owned(),
        step: name.to_owned(),
        priority: Number::from(0),
        abortable: true,
        reboot_requested: false,
        // Each names a state to reach, or time to pass: doing it again is harmless.
        idempotent: true,
        args,
        requires_ramdisk: false,
        in_band: false,
        provider: RESERVED_PROVIDER.to_owned(),
        raw: Map::new(),
    })
}

/// Weight of an interface when two steps have one priority (specs/cleaning-states.txt: power, management,
/// deploy; manual-cleaning adds bios and raid; vendor and firmware as in Ironic).
pub fn interface_weight(interface: &str) -> u8 {
    match interface {
        "vendor" => 7,
        "power" => 6,
        "management" => 5,
        "firmware" => 4,
        "deploy" => 3,
        "bios" => 2,
        "raid" => 1,
        _ => 0,
    }
}

fn priority(step: &CatalogueStep) -> f64 {
    step.priority.as_f64().unwrap_or(0.0)
}

/// Order of automated steps: priority first, then interface, then name so that the order is always the same.
pub fn run_order(a: &CatalogueStep, b: &CatalogueStep) -> Ordering {
    priority(b)
        .total_cmp(&priority(a))
        .then_with(|| interface_weight(&b.interface).cmp(&interface_weight(&a.interface)))
        .then_with(|| a.interface.cmp(&b.interface))
        .then_with(|| a.step.cmp(&b.step))
}

/// The plan of an automated cleaning: every step with a priority above 0, in [`run_order`].
pub fn automated_plan(steps: &[CatalogueStep]) -> Vec<PlannedStep> {
    let mut enabled: Vec<_> = steps.iter().filter(|step| step.is_enabled()).cloned().collect();
    enabled.sort_by(run_order);
    enabled.into_iter().map(|step| PlannedStep { step, given: Map::new() }).collect()
}

/// Enabled steps of one interface with one priority, by priority: for steps of the controller a mistake of
/// the configuration, for steps of agents ordered by name (specs/cleaning-states.txt, tie for priority).
pub fn ties<'a>(steps: impl IntoIterator<Item = &'a CatalogueStep>) -> Vec<Vec<&'a CatalogueStep>> {
    let mut seen: BTreeMap<(String, String), Vec<&CatalogueStep>> = BTreeMap::new();
    for step in steps.into_iter().filter(|step| step.is_enabled()) {
        let key = (step.interface.clone(), format!("{:030.10}", priority(step)));
        seen.entry(key).or_default().push(step);
    }
    seen.into_values().filter(|same| same.len() > 1).collect()
}

/// What is wrong with a list of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSteps {
    /// No agent or interface offers it.
    #[error("node does not support this {kind} step: {{'interface': '{interface}', 'step': '{step}'}}")]
    Unknown {
        /// `clean`, `deploy`, `service`.
        kind: &'static str,
        /// Interface.
        interface: String,
        /// Name.
        step: String,
    },
    /// Required arguments are missing.
    #[error("{kind} step {interface}.{step} is missing these required arguments: {}", names.join(", "))]
    Missing {
        /// `clean`, `deploy`, `service`.
        kind: &'static str,
        /// Interface.
        interface: String,
        /// Name.
        step: String,
        /// The arguments.
        names: Vec<String>,
    },
    /// Arguments the step does not take.
    #[error("{kind} step {interface}.{step} has these unexpected arguments: {}", names.join(", "))]
    Unexpected {
        /// `clean`, `deploy`, `service`.
        kind: &'static str,
        /// Interface.
        interface: String,
        /// Name.
        step: String,
        /// The arguments.
        names: Vec<String>,
    },
    /// `wait` with something that is no time.
    #[error("{interface}.wait: seconds must be a number from 0 to 86400")]
    Seconds {
        /// Interface.
        interface: String,
    },
    /// The ramdisk is not to be booted, and the step needs it.
    #[error("{kind} step {interface}.{step} requires the ramdisk, which disable_ramdisk forbids")]
    NeedsRamdisk {
        /// `clean`, `service`.
        kind: &'static str,
        /// Interface.
        interface: String,
        /// Name.
        step: String,
    },
    /// The same deploy step twice.
    #[error("deploy step {interface}.{step} is given more than once")]
    Twice {
        /// Interface.
        interface: String,
        /// Name.
        step: String,
    },
    /// A priority that deploy steps cannot have (specs/deploy-steps.txt: non-negative integers).
    #[error("deploy step {interface}.{step} has the priority {priority}; it must be a non-negative integer")]
    Priority {
        /// Interface.
        interface: String,
        /// Name.
        step: String,
        /// What it has.
        priority: String,
    },
    /// A user may switch `deploy.deploy` off and nothing else.
    #[error("deploy.deploy is a core step: its priority may only be set to 0, and it takes no arguments")]
    Core,
}

/// The plan of what a user asked for: exactly that order, checked against what is known.
pub fn requested_plan(
    kind: StepKind,
    asked: &[RequestedStep],
    known: &[CatalogueStep],
) -> Result<Vec<PlannedStep>, BadSteps> {
    asked.iter().map(|want| checked(kind, want, known)).collect()
}

fn checked(kind: StepKind, want: &RequestedStep, known: &[CatalogueStep]) -> Result<PlannedStep, BadSteps> {
    let (interface, step) = (want.interface.clone(), want.step.clone());
    let kind = kind.as_str();
    let found = reserved(&want.interface, &want.step).or_else(|| {
        known.iter().find(|step| step.interface == want.interface && step.step == want.step).cloned()
    });
    let Some(mut found) = found else { return Err(BadSteps::Unknown { kind, interface, step }) };
    let names: Vec<String> =
        want.args.keys().filter(|name| !found.args.contains_key(*name)).cloned().collect();
    if !names.is_empty() {
        return Err(BadSteps::Unexpected { kind, interface, step, names });
    }
    let names: Vec<String> = found
        .args
        .iter()
        .filter(|(name, arg)| arg.required && !want.args.contains_key(*name))
        .map(|(name, _)| name.clone())
        .collect();
    if !names.is_empty() {
        return Err(BadSteps::Missing { kind, interface, step, names });
    }
    if Reserved::of(&found) == Some(Reserved::Wait)
        && want.args.get("seconds").is_some_and(|s| !s.as_f64().is_some_and(|s| (0.0..=86400.0).contains(&s)))
    {
        return Err(BadSteps::Seconds { interface });
    }
    if let Some(priority) = &want.priority {
        found.priority = priority.clone();
    }
    Ok(PlannedStep { step: found, given: want.args.clone() })
}

/// What disabling the ramdisk forbids.
pub fn needs_no_ramdisk(kind: StepKind, plan: &[PlannedStep]) -> Result<(), BadSteps> {
    match plan.iter().find(|planned| planned.step.requires_ramdisk) {
        None => Ok(()),
        Some(planned) => Err(BadSteps::NeedsRamdisk {
            kind: kind.as_str(),
            interface: planned.step.interface.clone(),
            step: planned.step.step.clone(),
        }),
    }
}

/// The plan of a deployment: what is enabled by itself, with what templates and then the user put in its
/// place; a priority of 0 takes a step out. In [`run_order`].
pub fn deploy_plan(
    known: &[CatalogueStep],
    templates: &[RequestedStep],
    user: &[RequestedStep],
) -> Result<Vec<PlannedStep>, BadSteps> {
    for step in known {
        whole(&step.interface, &step.step, &step.priority)?;
    }
    let mut plan: Vec<PlannedStep> = automated_plan(known);
    for source in [templates, user] {
        let mut seen = BTreeSet::new();
        for want in source {
            if !seen.insert((want.interface.as_str(), want.step.as_str())) {
                let (interface, step) = (want.interface.clone(), want.step.clone());
                return Err(BadSteps::Twice { interface, step });
            }
            if let Some(priority) = &want.priority {
                whole(&want.interface, &want.step, priority)?;
            }
            if (want.interface.as_str(), want.step.as_str()) == ("deploy", "deploy")
                && !(want.args.is_empty() && want.priority.as_ref().and_then(Number::as_u64) == Some(0))
            {
                return Err(BadSteps::Core);
            }
            let planned = checked(StepKind::Deploy, want, known)?;
            plan.retain(|old| (&old.step.interface, &old.step.step) != (&want.interface, &want.step));
            if planned.step.is_enabled() {
                plan.push(planned);
            }
        }
    }
    plan.sort_by(|a, b| run_order(&a.step, &b.step));
    Ok(plan)
}

fn whole(interface: &str, step: &str, priority: &Number) -> Result<(), BadSteps> {
    if priority.as_u64().is_some() {
        return Ok(());
    }
    let (interface, step, priority) = (interface.to_owned(), step.to_owned(), priority.to_string());
    Err(BadSteps::Priority { interface, step, priority })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn step(interface: &str, name: &str, priority: Value) -> CatalogueStep {
        serde_json::from_value(json!({"interface": interface, "step": name, "priority": priority})).unwrap()
    }

    fn ask(interface: &str, step: &str, rest: Value) -> RequestedStep {
        let mut whole = json!({"interface": interface, "step": step});
        whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    fn labels(plan: &[PlannedStep]) -> Vec<String> {
        plan.iter().map(PlannedStep::label).collect()
    }

    #[test]
    fn automated_order_is_priority_then_interface_then_name() {
        let plan = automated_plan(&[
            step("raid", "r", json!(10.0)),
            step("bios", "x", json!(10)),
            step("deploy", "b", json!(10.0)),
            step("deploy", "a", json!(10.0)),
            step("management", "m", json!(10.0)),
            step("power", "p", json!(10)),
            step("deploy", "never", json!(0.0)),
            step("deploy", "first", json!(10.5)),
        ]);
        assert_eq!(
            labels(&plan),
            ["deploy.first", "power.p", "management.m", "deploy.a", "deploy.b", "bios.x", "raid.r"]
        );
    }

    #[test]
    fn a_tie_is_of_one_interface_and_of_enabled_steps() {
        let steps = [
            step("deploy", "b", json!(10)),
            step("deploy", "a", json!(10.0)),
            step("raid", "r", json!(10)),
            step("deploy", "off", json!(0)),
            step("deploy", "off too", json!(0)),
            // As close as an operator writes two priorities that differ.
            step("bios", "earlier", json!(90.4)),
            step("bios", "later", json!(90.3)),
        ];
        let found: Vec<Vec<_>> = ties(&steps)
            .into_iter()
            .map(|same| same.into_iter().map(|s| s.step.as_str()).collect())
            .collect();
        assert_eq!(found, [["b", "a"]]);
    }

    #[test]
    fn a_requested_plan_keeps_the_order_and_names_what_is_wrong() {
        let mut wanting = step("raid", "create_configuration", json!(0));
        wanting
            .args
            .insert("size".into(), Argument { description: "GiB".into(), required: true, schema: None });
        let known = [step("deploy", "erase_devices", json!(10)), wanting];
        let plan = |asked: &[RequestedStep]| requested_plan(StepKind::Clean, asked, &known);
        let good = plan(&[
            ask("raid", "create_configuration", json!({"args": {"size": 1}})),
            ask("deploy", "erase_devices", json!({})),
        ])
        .unwrap();
        assert_eq!(labels(&good), ["raid.create_configuration", "deploy.erase_devices"]);
        assert_eq!(good[0].wire()["args"], json!({"size": 1}));
        let wrong = |asked: RequestedStep| plan(&[asked]).unwrap_err().to_string();
        assert_eq!(
            wrong(ask("raid", "create_configuration", json!({}))),
            "clean step raid.create_configuration is missing these required arguments: size"
        );
        assert!(wrong(ask("deploy", "erase_devices", json!({"args": {"x": 1}}))).ends_with("arguments: x"));
        assert!(wrong(ask("deploy", "nope", json!({}))).contains("'step': 'nope'"));
    }

    /// Ironic drops reserved steps silently (05-experiments 4); here each one is in the plan, in its place.
    #[test]
    fn reserved_steps_stay_where_they_were_asked_for() {
        let known = [step("deploy", "erase_devices", json!(10))];
        let asked = [
            ask("power", "power_off", json!({})),
            ask("deploy", "erase_devices", json!({})),
            ask("deploy", "hold", json!({})),
            ask("power", "wait", json!({"args": {"seconds": 1.5}})),
            ask("power", "reboot", json!({})),
        ];
        let plan = requested_plan(StepKind::Clean, &asked, &known).unwrap();
        assert_eq!(
            plan.iter().map(|planned| Reserved::of(&planned.step)).collect::<Vec<_>>(),
            [
                Some(Reserved::PowerOff),
                None,
                Some(Reserved::Hold),
                Some(Reserved::Wait),
                Some(Reserved::Reboot)
            ]
        );
        for seconds in [json!("soon"), json!(-1), json!(1e9)] {
            let asked = [ask("power", "wait", json!({"args": {"seconds": seconds}}))];
            assert!(
                requested_plan(StepKind::Clean, &asked, &known).unwrap_err().to_string().contains("seconds")
            );
        }
        let asked = [ask("power", "hold", json!({"args": {"seconds": 1}}))];
        assert!(requested_plan(StepKind::Clean, &asked, &known).is_err());
    }

    #[test]
    fn a_step_of_an_agent_is_no_reserved_one_whatever_it_is_called() {
        for (provider, name, what) in [
            (RESERVED_PROVIDER, "reboot", Reserved::Reboot),
            (DIRECT, "tear_down_agent", Reserved::PowerOff),
            (CUSTOM_AGENT, BOOT_INSTANCE, Reserved::PowerOn),
        ] {
            let mut named = step("deploy", name, json!(0));
            provider.clone_into(&mut named.provider);
            for (in_band, expected) in [(false, Some(what)), (true, None)] {
                named.in_band = in_band;
                assert_eq!(Reserved::of(&named), expected, "{name}");
            }
        }
    }

    #[test]
    fn templates_and_users_put_deploy_steps_in_the_place_of_declared_ones() {
        let known = [
            step("deploy", "deploy", json!(100)),
            step("bios", "apply", json!(0)),
            step("raid", "apply", json!(0)),
            step("deploy", "erase", json!(50)),
        ];
        let bios = ask("bios", "apply", json!({"priority": 150}));
        let plan = deploy_plan(&known, std::slice::from_ref(&bios), &[]).unwrap();
        assert_eq!(labels(&plan), ["bios.apply", "deploy.deploy", "deploy.erase"]);
        let user =
            [ask("bios", "apply", json!({"priority": 60})), ask("deploy", "erase", json!({"priority": 0}))];
        let plan = deploy_plan(&known, std::slice::from_ref(&bios), &user).unwrap();
        assert_eq!(labels(&plan), ["deploy.deploy", "bios.apply"]);

        let wrong = |user: &[RequestedStep]| deploy_plan(&known, &[], user).unwrap_err();
        assert!(matches!(wrong(&[bios.clone(), bios.clone()]), BadSteps::Twice { .. }));
        // Ironic drops it silently where there is no agent (05-experiments 10).
        assert!(matches!(wrong(&[ask("deploy", "nope", json!({"priority": 1}))]), BadSteps::Unknown { .. }));
        assert!(matches!(
            wrong(&[ask("bios", "apply", json!({"priority": 1.5}))]),
            BadSteps::Priority { .. }
        ));
        assert_eq!(wrong(&[ask("deploy", "deploy", json!({"priority": 10}))]), BadSteps::Core);
        assert!(matches!(
            deploy_plan(&[step("deploy", "half", json!(0.5))], &[], &[]),
            Err(BadSteps::Priority { .. })
        ));
    }

    #[test]
    fn without_a_ramdisk_no_step_may_need_it() {
        let known = [step("deploy", "erase_devices", json!(10))];
        let plan =
            |name: &str| requested_plan(StepKind::Clean, &[ask("deploy", name, json!({}))], &known).unwrap();
        assert!(needs_no_ramdisk(StepKind::Clean, &plan("hold")).is_ok());
        assert!(needs_no_ramdisk(StepKind::Clean, &plan("erase_devices")).is_err());
    }
}
