//! All rules of an inspection, in their order.

use crate::budget::Budget;
use crate::findings::{Findings, Note};
use crate::signature::OperationError;
use crate::{action, condition};
use model::Resource;
use model::bmc_login::{PasswordRedirect, redirected};
use serde_json::Value;
use std::cmp::Reverse;
use std::fmt;
use uuid::Uuid;

/// Longest reason of a failure, in characters: the text of a rule's template may be as long as an inventory.
const WHY_MOST: usize = 1024;

/// The result of the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The findings as changed by the rules.
    pub findings: Findings,
    /// What rules want to have logged.
    pub notes: Vec<Note>,
}

/// A rule that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The rule.
    pub rule: Uuid,
    /// Where in it: `condition 1 (eq)`, `action 2 (set-attribute)`.
    pub place: String,
    /// The reason; `None` for a sensitive rule.
    pub why: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.why.as_deref().unwrap_or("the rule is sensitive, so its reason is not shown");
        write!(out, "inspection rule {} failed in {}: {why}", self.rule, self.place)
    }
}

/// Apply `rules` to what was found: those of phase `main` from the highest priority down, of one priority in the order
/// given. Each rule applies if all its conditions hold for the findings as the rules before have changed them.
///
/// # Errors
/// The first rule that fails. The findings are not changed then.
pub fn apply(rules: &[Resource], findings: Findings) -> Result<Applied, Box<Failure>> {
    let phase = |rule: &&Resource| rule.text("phase").is_none_or(|phase| phase == "main");
    let mut order: Vec<_> = rules.iter().filter(phase).collect();
    order.sort_by_key(|rule| Reverse(rule.field("priority").as_i64().unwrap_or(0)));
    let budget = Budget::new();
    let mut applied = Applied { findings, notes: Vec::new() };
    for rule in order {
        one(rule, &mut applied, &budget)?;
    }
    Ok(applied)
}

fn one(rule: &Resource, applied: &mut Applied, budget: &Budget) -> Result<(), Box<Failure>> {
    let sensitive = rule.field("sensitive") == true;
    let failed = |what: &str, index: usize, operation: &Value, OperationError(why): OperationError| {
        let op = operation["op"].as_str().unwrap_or_default();
        let place = format!("{what} {} ({op})", index + 1);
        let why = why.chars().take(WHY_MOST).collect();
        Box::new(Failure { rule: rule.uuid, place, why: (!sensitive).then_some(why) })
    };
    let list = |name: &str| rule.field(name).as_array().map_or(&[][..], Vec::as_slice);
    for (index, condition) in list("conditions").iter().enumerate() {
        let holds = condition::holds(condition, &applied.findings, budget)
            .map_err(|why| failed("condition", index, condition, why))?;
        if !holds {
            return Ok(());
        }
    }
    let before = applied.findings.node.driver_info.clone();
    for (index, action) in list("actions").iter().enumerate() {
        let notes = action::run(action, &mut applied.findings, budget)
            .map_err(|why| failed("action", index, action, why))?;
        if !sensitive {
            applied.notes.extend(notes);
        }
    }
    let given = |key: &str| list("actions").iter().any(|action| action::sets_driver_info(action, key));
    match redirected(&before, &applied.findings.node.driver_info, given) {
        None => Ok(()),
        Some(PasswordRedirect { key, password }) => Err(Box::new(Failure {
            rule: rule.uuid,
            place: "its actions".to_owned(),
            why: (!sensitive).then(|| {
                format!("they change driver_info/{key} and do not set driver_info/{password}: the stored password would be sent elsewhere")
            }),
        })),
    }
}
