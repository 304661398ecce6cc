//! The tables in docs/cleaning.md and docs/provisioning.md agree with the code.

use hwm_sdk::StepKind as AgentKind;
use model::provision::{ProvisionState, Verb, transition};
use model::{CatalogueStep, StepKind};
use std::collections::{BTreeMap, BTreeSet};

const CLEANING: &str = include_str!("../../../docs/cleaning.md");
const PROVISIONING: &str = include_str!("../../../docs/provisioning.md");

/// The rows of the one table that has these headings.
fn table(text: &str, headings: &[&str]) -> Vec<Vec<String>> {
    let head = format!("| {} |\n", headings.join(" | "));
    let mut tables = text.split(&head);
    let (_, body) = (tables.next(), tables.next().unwrap_or_else(|| panic!("no table {head}")));
    assert!(tables.next().is_none(), "two tables {head}");
    let rows = body.lines().skip(1).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<_> = rows.map(cells).collect();
    assert!(rows.iter().all(|row| row.len() == headings.len()), "{rows:?}");
    rows
}

/// `` `a`, `b` `` without the marks.
fn names(cell: &str) -> Vec<String> {
    cell.split(", ").map(|name| name.trim_matches('`').to_owned()).filter(|name| !name.is_empty()).collect()
}

fn documented(rows: Vec<Vec<String>>, columns: usize) -> BTreeSet<Vec<String>> {
    let count = rows.len();
    let rows: BTreeSet<_> = rows.into_iter().map(|row| row[..columns].to_vec()).collect();
    assert_eq!(rows.len(), count, "a row is there twice");
    rows
}

fn or_none(priority: Option<String>) -> String {
    priority.unwrap_or_else(|| "-".to_owned())
}

#[test]
fn every_step_of_the_agent_is_documented_with_its_priorities() {
    let headings = ["step", "clean", "deploy", "service", "abortable", "what it does"];
    let declared: BTreeSet<Vec<String>> = hwm_generic::STEPS
        .iter()
        .map(|step| {
            let priority = |kind| step.step(kind).map(|step| step.priority.to_string());
            vec![
                format!("`{}.{}`", step.interface, step.step),
                or_none(priority(AgentKind::Clean)),
                or_none(priority(AgentKind::Deploy)),
                or_none(priority(AgentKind::Service)),
                if step.abortable { "yes" } else { "no" }.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented(table(CLEANING, &headings), 5), declared);
    assert!(hwm_generic::STEPS.iter().all(|step| step.idempotent), "the text says that all are");
}

/// Every step that some node could have, by interface, implementation and name.
fn out_of_band() -> BTreeMap<(String, String, String), BTreeMap<StepKind, CatalogueStep>> {
    let mut found: BTreeMap<_, BTreeMap<StepKind, CatalogueStep>> = BTreeMap::new();
    for driver in bmc::DRIVERS {
        for interface in bmc::interfaces(driver).unwrap() {
            for implementation in interface.enabled {
                let choice = (format!("{}_interface", interface.name), implementation.name.to_owned());
                let abilities = bmc::abilities(driver, &BTreeMap::from([choice])).unwrap();
                for kind in StepKind::ALL {
                    for step in abilities.out_of_band(kind) {
                        let key = (step.interface.clone(), step.provider.clone(), step.step.clone());
                        found.entry(key).or_default().insert(kind, step.clone());
                    }
                }
            }
        }
    }
    found
}

#[test]
fn every_out_of_band_step_is_documented_with_its_priorities_and_arguments() {
    let headings =
        ["interface", "implementation", "step", "clean", "deploy", "service", "arguments", "what it does"];
    let declared: BTreeSet<Vec<String>> = out_of_band()
        .into_iter()
        .map(|((interface, provider, step), kinds)| {
            let priority = |kind| or_none(kinds.get(&kind).map(|step| step.priority.to_string()));
            let args: BTreeSet<_> = kinds.values().flat_map(|step| step.args.keys()).collect();
            let args: Vec<_> = args.into_iter().map(|name| format!("`{name}`")).collect();
            let mut row = vec![interface, provider, format!("`{step}`")];
            row.extend([StepKind::Clean, StepKind::Deploy, StepKind::Service].map(priority));
            row.push(args.join(", "));
            row
        })
        .collect();
    let mut rows = table(CLEANING, &headings);
    for row in &mut rows {
        let mut args: Vec<_> = row[6].split(", ").collect();
        args.sort_unstable();
        row[6] = args.join(", ");
    }
    assert_eq!(documented(rows, 7), declared);
}

#[test]
fn the_implementations_of_every_interface_are_documented_with_the_default_first() {
    let headings: Vec<String> = std::iter::once("interface".to_owned())
        .chain(bmc::DRIVERS.iter().map(|name| format!("`{name}`")))
        .collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut offered: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for driver in bmc::DRIVERS {
        for interface in bmc::interfaces(driver).unwrap() {
            let enabled: Vec<_> = interface.enabled.iter().map(|known| known.name).collect();
            offered
                .entry(interface.name)
                .or_insert_with(|| vec![interface.name.to_owned()])
                .push(enabled.join(", "));
        }
    }
    assert_eq!(documented(table(CLEANING, &headings), headings.len()), offered.into_values().collect());
}

#[test]
fn every_setting_of_the_conductor_is_documented_with_its_default() {
    let defaults = serde_json::to_value(conductor::Settings::default()).unwrap();
    let settings = defaults.as_object().unwrap().iter();
    let settings: BTreeSet<_> =
        settings.map(|(name, default)| vec![format!("`{name}`"), format!("`{default}`")]).collect();
    assert_eq!(documented(table(CLEANING, &["setting", "default", "concerns"]), 2), settings);
    let examples: Vec<&str> =
        CLEANING.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let table: toml::Table = toml::from_str(example).unwrap();
        let settings: Result<conductor::Settings, _> = table["conductor"].clone().try_into();
        assert_ne!(settings.unwrap(), conductor::Settings::default(), "{example}");
    }
}

/// A verb in a state, and the state that it leads to at once.
type Move = (&'static str, &'static str, &'static str);

#[test]
fn every_verb_is_documented_with_its_targets_and_states() {
    let mut written: BTreeSet<Move> = BTreeSet::new();
    let mut targets: BTreeMap<String, Verb> = BTreeMap::new();
    for row in table(PROVISIONING, &["verb", "target", "from", "leads to"]) {
        let state = |name: &str| {
            ProvisionState::parse(name).unwrap_or_else(|| panic!("{name:?} is no state: {row:?}")).as_str()
        };
        let first = row[3].split(", ").next().unwrap_or_default();
        for target in names(&row[1]) {
            let verb = Verb::parse_target(&target).unwrap_or_else(|| panic!("{target:?} is no target"));
            targets.insert(target, verb);
            let moves = names(&row[2]).into_iter().map(|from| (verb.as_str(), state(&from), state(first)));
            written.extend(moves);
        }
        // What is typed: a name of the command line that the API knows as well, or its override.
        assert!(names(&row[0]).iter().all(|verb| verb == "override" || Verb::parse_target(verb).is_some()));
    }
    let verbs: BTreeSet<Verb> = targets.values().copied().collect();
    let mut moves: BTreeSet<Move> = BTreeSet::new();
    for from in ProvisionState::ALL {
        // There the same events are the conductor's own.
        if matches!(from, ProvisionState::Cleaning | ProvisionState::Deleting) {
            continue;
        }
        for verb in &verbs {
            if let Ok(to) = transition(from, *verb) {
                moves.insert((verb.as_str(), from.as_str(), to.as_str()));
            }
        }
    }
    assert_eq!(written, moves);
    let spellings: BTreeSet<&str> = targets.keys().map(String::as_str).collect();
    let known = [
        "abort",
        "active",
        "adopt",
        "available",
        "clean",
        "deleted",
        "deploy",
        "inspect",
        "manage",
        "manageable",
        "provide",
        "rebuild",
        "rescue",
        "service",
        "undeploy",
        "unhold",
        "unrescue",
    ];
    assert_eq!(spellings, BTreeSet::from(known));
}

/// The part of a text under a heading, in one line.
fn section(text: &str, heading: &str) -> String {
    let (_, after) =
        text.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    let section = after.split("\n## ").next().unwrap_or(after);
    section.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// specs/cleaning-states.txt, Security and Documentation impact: attack vectors that remain with untrusted users and
/// compromised nodes must be documented.
#[test]
fn the_security_problems_that_remain_are_named() {
    let text = section(CLEANING, "Which security problems remain");
    for named in [
        "untrusted tenant",
        "compromised",
        "Firmware is not cleaned",
        "BMC",
        "Hidden areas",
        "network",
        "Denial of service",
    ] {
        assert!(text.contains(named), "{named:?} is not in it");
    }
}

/// specs/cleaning-states.txt, specs/manual-cleaning.txt, specs/node-retirement.txt: what must be documented.
#[test]
fn cleaning_both_ways_its_api_and_retirement_are_explained() {
    let what = section(CLEANING, "What it is");
    for named in [
        "Automated cleaning",
        "Manual cleaning",
        "/v1/nodes/{ident}/states/provision",
        "clean_steps",
        "/v1/nodes/{ident}/cleaning/steps",
        "Retry-Request-After",
        "Nova",
    ] {
        assert!(what.contains(named), "{named:?} is not in it");
    }
    let switch = section(CLEANING, "Switching it on and off");
    assert!(
        switch.contains("`automated_clean_enable = false`") && switch.contains("--automated-clean false")
    );
    let order = section(CLEANING, "How steps are ordered");
    assert!(
        order.contains("power, management, deploy, bios, raid")
            && order.contains("clean_step_priority_override")
    );
    let rules = section(CLEANING, "Rules for authors of steps");
    assert!(rules.contains("The apparent configuration must not change"));
    let retirement = section(CLEANING, "Retirement");
    for named in ["--retired-reason", "/v1/nodes?retired=true", "/retired", "`provide`", "409", "manageable"]
    {
        assert!(retirement.contains(named), "{named:?} is not in it");
    }
}
