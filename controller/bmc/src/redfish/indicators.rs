//! The LED that identifies a server: `LocationIndicatorActive`, or in older services `IndicatorLED`, of
//! ComputerSystem (DSP0268). Pure functions over JSON.

use serde_json::{Value, json};

use crate::{Indicator, IndicatorState};

/// The indicator, if the system has one.
pub(super) fn indicator(system: &Value) -> Option<Indicator> {
    let text = |key: &str| system.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let states: &[IndicatorState] = if has_led(system) {
        &[IndicatorState::Blinking, IndicatorState::Off, IndicatorState::On]
    } else if is_active(system).is_some() {
        &[IndicatorState::Off, IndicatorState::On]
    } else {
        return None;
    };
    let name = text("UUID").or(text("Id")).unwrap_or("led").to_owned();
    Some(Indicator { component: "system", name, read_only: false, states })
}

/// Its state.
pub(super) fn state(system: &Value) -> IndicatorState {
    match system.get("IndicatorLED").and_then(Value::as_str) {
        Some("Lit") => IndicatorState::On,
        Some("Off") => IndicatorState::Off,
        Some("Blinking") => IndicatorState::Blinking,
        Some(_) => IndicatorState::Unknown,
        None => match is_active(system) {
            Some(true) => IndicatorState::On,
            Some(false) => IndicatorState::Off,
            None => IndicatorState::Unknown,
        },
    }
}

/// The PATCH body for a state; `None` if the system cannot show it.
pub(super) fn patch(system: &Value, state: IndicatorState) -> Option<Value> {
    if has_led(system) {
        let word = match state {
            IndicatorState::On => "Lit",
            IndicatorState::Off => "Off",
            IndicatorState::Blinking => "Blinking",
            IndicatorState::Unknown => return None,
        };
        return Some(json!({ "IndicatorLED": word }));
    }
    is_active(system)?;
    match state {
        IndicatorState::On | IndicatorState::Off => {
            Some(json!({"LocationIndicatorActive": state == IndicatorState::On}))
        }
        IndicatorState::Blinking | IndicatorState::Unknown => None,
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
    fn indicator_led_and_location_indicator() {
        let old = json!({"UUID": "u", "IndicatorLED": "Lit"});
        let new = json!({"Id": "1", "LocationIndicatorActive": false});
        assert_eq!(
            (state(&old), state(&new), state(&json!({}))),
            (IndicatorState::On, IndicatorState::Off, IndicatorState::Unknown)
        );
        assert_eq!(indicator(&old).map(|found| (found.name, found.states.len())), Some(("u".to_owned(), 3)));
        assert_eq!(indicator(&new).map(|found| (found.name, found.states.len())), Some(("1".to_owned(), 2)));
        assert_eq!(indicator(&json!({"IndicatorLED": null})), None);
        assert_eq!(patch(&old, IndicatorState::Blinking), Some(json!({"IndicatorLED": "Blinking"})));
        assert_eq!(patch(&new, IndicatorState::On), Some(json!({"LocationIndicatorActive": true})));
        assert_eq!(patch(&new, IndicatorState::Blinking), None);
        assert_eq!(patch(&json!({}), IndicatorState::On), None);
    }
}
