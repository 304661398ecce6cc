//! The lamp that shows which server is which: `LocationIndicatorActive`, or in older services `IndicatorLED`, of
//! ComputerSystem (DSP0268). Pure functions over JSON.

use serde_json::{Value, json};

use crate::{Indicator, LampState};

/// The lamp, if the system has one.
pub(super) fn indicator(system: &Value) -> Option<Indicator> {
    let text = |key: &str| system.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let states: &[LampState] = if has_led(system) {
        &[LampState::Blinking, LampState::Off, LampState::On]
    } else if is_active(system).is_some() {
        &[LampState::Off, LampState::On]
    } else {
        return None;
    };
    let name = text("UUID").or(text("Id")).unwrap_or("led").to_owned();
    Some(Indicator { component: "system", name, read_only: false, states })
}

/// What it does.
pub(super) fn state(system: &Value) -> LampState {
    match system.get("IndicatorLED").and_then(Value::as_str) {
        Some("Lit") => LampState::On,
        Some("Off") => LampState::Off,
        Some("Blinking") => LampState::Blinking,
        Some(_) => LampState::Unknown,
        None => match is_active(system) {
            Some(true) => LampState::On,
            Some(false) => LampState::Off,
            None => LampState::Unknown,
        },
    }
}

/// What to send; `None`: it cannot.
pub(super) fn patch(system: &Value, state: LampState) -> Option<Value> {
    if has_led(system) {
        let word = match state {
            LampState::On => "Lit",
            LampState::Off => "Off",
            LampState::Blinking => "Blinking",
            LampState::Unknown => return None,
        };
        return Some(json!({ "IndicatorLED": word }));
    }
    is_active(system)?;
    match state {
        LampState::On | LampState::Off => Some(json!({"LocationIndicatorActive": state == LampState::On})),
        LampState::Blinking | LampState::Unknown => None,
    }
}

fn has_led(system: &Value) -> bool {
    system.get("IndicatorLED").is_some_and(Value::is_string)
}

fn is_active(system: &Value) -> Option<bool> {
    system.get("LocationIndicatorActive")?.as_bool()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_lamps() {
        let old = json!({"UUID": "u", "IndicatorLED": "Lit"});
        let new = json!({"Id": "1", "LocationIndicatorActive": false});
        assert_eq!(
            (state(&old), state(&new), state(&json!({}))),
            (LampState::On, LampState::Off, LampState::Unknown)
        );
        assert_eq!(indicator(&old).map(|lamp| (lamp.name, lamp.states.len())), Some(("u".to_owned(), 3)));
        assert_eq!(indicator(&new).map(|lamp| (lamp.name, lamp.states.len())), Some(("1".to_owned(), 2)));
        assert_eq!(indicator(&json!({"IndicatorLED": null})), None);
        assert_eq!(patch(&old, LampState::Blinking), Some(json!({"IndicatorLED": "Blinking"})));
        assert_eq!(patch(&new, LampState::On), Some(json!({"LocationIndicatorActive": true})));
        assert_eq!(patch(&new, LampState::Blinking), None);
        assert_eq!(patch(&json!({}), LampState::On), None);
    }
}
