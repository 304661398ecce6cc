//! Conditions.

use crate::args::Args;
use crate::budget::Budget;
use crate::findings::Findings;
use crate::python::{compare, equal, text, truth, type_name};
use crate::scope::Scope;
use crate::signature::{OperationError, Signature, turns};
use regex::RegexBuilder;
use serde_json::Value;
use std::cmp::Ordering;
use std::net::IpAddr;

/// An operator's name, arguments and what it says.
pub struct Operator {
    /// Name and arguments.
    pub signature: Signature,
    holds: fn(&Args, &Scope) -> Result<bool, OperationError>,
}

const fn operator(
    op: &'static str,
    needs: &'static [&'static str],
    takes: &'static [&'static str],
    filled: &'static [&'static str],
    holds: fn(&Args, &Scope) -> Result<bool, OperationError>,
) -> Operator {
    Operator { signature: Signature { op, needs, takes, filled }, holds }
}

/// Every operator, in Ironic's order. With a `!` before its name it says the opposite.
pub const OPERATORS: [Operator; 11] = [
    operator("eq", &["values"], &["force_strings"], &["values"], |args, scope| {
        chain(args, scope, |a, b| Some(equal(a, b)))
    }),
    operator("lt", &["values"], &["force_strings"], &["values"], |args, scope| {
        chain(args, scope, |a, b| compare(a, b).map(Ordering::is_lt))
    }),
    operator("gt", &["values"], &["force_strings"], &["values"], |args, scope| {
        chain(args, scope, |a, b| compare(a, b).map(Ordering::is_gt))
    }),
    operator("is-empty", &["value"], &[], &["value"], |args, _| {
        Ok(matches!(text(args.get("value"), false).as_str(), "" | "None" | "[]" | "{}"))
    }),
    operator("in-net", &["address", "subnet"], &[], &["address", "subnet"], in_net),
    operator("matches", &["value", "regex"], &[], &["value"], |args, scope| found(args, scope, true)),
    operator("contains", &["value", "regex"], &[], &["value"], |args, scope| found(args, scope, false)),
    operator("one-of", &["value"], &["values"], &["value"], one_of),
    operator("is-none", &["value"], &[], &["value"], |args, _| Ok(args.get("value").is_null())),
    operator("is-true", &["value"], &[], &["value"], |args, _| {
        Ok(match args.get("value") {
            value @ (Value::Bool(_) | Value::Number(_)) => truth(value),
            Value::String(text) => matches!(text.to_lowercase().as_str(), "yes" | "true"),
            _ => false,
        })
    }),
    operator("is-false", &["value"], &[], &["value"], |args, _| {
        Ok(match args.get("value") {
            value @ (Value::Bool(_) | Value::Number(_)) => !truth(value),
            Value::String(text) => matches!(text.to_lowercase().as_str(), "no" | "false"),
            value => value.is_null(),
        })
    }),
];

/// The operator of this name, and whether it is inverted.
pub fn find(op: &str) -> Option<(&'static Operator, bool)> {
    let plain = op.strip_prefix('!').unwrap_or(op);
    Some((OPERATORS.iter().find(|operator| operator.signature.op == plain)?, plain != op))
}

/// Whether a condition holds.
pub fn holds(condition: &Value, found: &Findings, budget: &Budget) -> Result<bool, OperationError> {
    let op = condition["op"].as_str().unwrap_or_default();
    let (operator, inverted) =
        find(op).ok_or_else(|| OperationError("there is no such operator".to_owned()))?;
    let missing_is_none = operator.signature.op == "is-empty";
    let turn = |item| {
        budget.operation()?;
        let scope = Scope { found, item, missing_is_none, budget };
        let args = Args::of(&operator.signature, condition, &scope)?;
        Ok((operator.holds)(&args, &scope)? != inverted)
    };
    let Some(items) = turns(condition) else { return turn(None) };
    let multiple = condition.get("multiple").and_then(Value::as_str).unwrap_or("any");
    // Each turn is made, so that one that cannot be judged is not passed over; except after the first that holds
    // where the first is asked for.
    let mut results = Vec::new();
    for item in items {
        let result = turn(Some(item))?;
        if multiple == "first" && result {
            return Ok(true);
        }
        results.push(result);
    }
    Ok(match multiple {
        "all" => results.iter().all(|result| *result),
        "last" => results.last().copied().unwrap_or(false),
        "first" => false,
        _ => results.contains(&true),
    })
}

/// Whether each value and the next are as `pair` wants them.
fn chain(
    args: &Args,
    scope: &Scope,
    pair: fn(&Value, &Value) -> Option<bool>,
) -> Result<bool, OperationError> {
    let Value::Array(values) = args.get("values") else {
        return Err(OperationError(format!(
            "Expected list for 'values', got: {}",
            type_name(args.get("values"))
        )));
    };
    // What a loop fills in are texts.
    let texts: Vec<_> = match scope.item.is_some() || truth(args.get("force_strings")) {
        true => values.iter().map(|value| Value::String(text(value, false))).collect(),
        false => values.clone(),
    };
    for two in texts.windows(2) {
        match pair(&two[0], &two[1]) {
            Some(true) => {}
            Some(false) => return Ok(false),
            None => {
                let (a, b) = (type_name(&two[0]), type_name(&two[1]));
                return Err(OperationError(format!(
                    "a value of type {a} cannot be compared with one of type {b}"
                )));
            }
        }
    }
    Ok(true)
}

fn one_of(args: &Args, _: &Scope) -> Result<bool, OperationError> {
    let value = args.get("value");
    match (args.get("values"), value) {
        (Value::Array(values), value) => Ok(values.iter().any(|other| equal(other, value))),
        (Value::String(text), Value::String(part)) => Ok(text.contains(part.as_str())),
        (Value::Object(fields), Value::String(key)) => Ok(fields.contains_key(key)),
        (Value::Object(_), Value::Null | Value::Bool(_) | Value::Number(_)) => Ok(false),
        (Value::Null, _) if !args.has("values") => Ok(false),
        (values, value) => Err(OperationError(format!(
            "a value of type {} cannot be in one of type {}",
            type_name(value),
            type_name(values)
        ))),
    }
}

/// An address and the length of its network: `10.0.0.0/8`, `10.0.0.0/255.0.0.0`, `fd00::1`.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => bits,
        Some(length) if length.bytes().all(|byte| byte.is_ascii_digit()) => length.parse().ok()?,
        Some(mask) => {
            let mask: IpAddr = mask.parse().ok()?;
            if mask.is_ipv4() != address.is_ipv4() {
                return None;
            }
            let (mask, all) = (number(mask), u128::MAX >> (128 - bits));
            let length = (mask << (128 - bits)).leading_ones();
            // A mask of the network, or one of the hosts.
            let host = (all & !mask).count_ones();
            match mask {
                mask if mask == all & !(all.checked_shr(length).unwrap_or(0)) => length,
                mask if mask == all.checked_shr(host).unwrap_or(0) => host,
                _ => return None,
            }
        }
    };
    (length <= bits).then_some((address, length))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn in_net(args: &Args, _: &Scope) -> Result<bool, OperationError> {
    let bad = |name: &str| OperationError(format!("invalid value: {name} is not one"));
    let (net, length) = args.get("subnet").as_str().and_then(network).ok_or_else(|| bad("subnet"))?;
    let address: IpAddr =
        args.get("address").as_str().and_then(|text| text.parse().ok()).ok_or_else(|| bad("address"))?;
    if net.is_ipv4() != address.is_ipv4() {
        return Ok(false);
    }
    let host = if net.is_ipv4() { 32 } else { 128 } - length;
    let cut = |address| number(address).checked_shr(host).unwrap_or(0);
    Ok(cut(net) == cut(address))
}

/// A regular expression as Python reads it, as far as Rust's can: for the whole of a text, or anything in it. It takes
/// time in proportion to the text. What has no meaning in both is refused.
pub fn regex(text: &str, whole: bool) -> Result<regex::Regex, OperationError> {
    if text.is_empty() && whole {
        return Err(OperationError("invalid regular expression: it is empty".to_owned()));
    }
    // Python's `$` also stands before a line break at the end.
    let (body, ends) = match text.strip_suffix('$') {
        Some(body) if !body.ends_with('\\') => (body, true),
        Some(_) => (text, false),
        None => (text, whole),
    };
    let (start, end) = (if whole { r"\A(?:" } else { "(?:" }, if ends { r"\n?\z)" } else { ")" });
    // By itself first: it must not close our group.
    let build = |text: &str| RegexBuilder::new(text).size_limit(1 << 20).build();
    build(body)
        .and_then(|_| build(&format!("{start}{body}{end}")))
        // Its own words quote the expression.
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => OperationError("invalid regular expression: it is too large".to_owned()),
            _ => OperationError(
                "invalid regular expression (look-around, backreferences and braces that repeat nothing are not \
                 supported)"
                    .to_owned(),
            ),
        })
}

fn found(args: &Args, scope: &Scope, whole: bool) -> Result<bool, OperationError> {
    let regex = regex(args.text("regex")?, whole)?;
    let text = text(args.get("value"), false);
    scope.budget.work(text.len())?;
    Ok(regex.is_match(&text))
}
