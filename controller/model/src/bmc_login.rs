//! Where the password of a BMC is sent. A user that changes that must know the password: otherwise a user with the right
//! to write `driver_info`, which does not show passwords, could have one sent to a service of their own.

use serde_json::{Map, Value};

/// The password of a driver, and the keys of `driver_info` that decide who receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// Key of the password.
    pub password: &'static str,
    /// Address, scheme, port, and how the receiver is verified.
    pub receiver: &'static [&'static str],
}

/// Of every driver. Those of drivers that a node does not use count too: its driver can be changed afterwards.
pub const LOGINS: [Login; 2] = [
    Login { password: "redfish_password", receiver: &["redfish_address", "redfish_verify_ca"] },
    Login { password: "ipmi_password", receiver: &["ipmi_address", "ipmi_port"] },
];

/// A change that would send a stored password elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PasswordRedirect {
    /// Key that was changed.
    pub key: &'static str,
    /// Key of the password.
    pub password: &'static str,
}

/// The first key whose change from `before` to `after` would send the password that `before` holds to another
/// receiver. A password that is `given` with the change, by its key, may be the stored one.
pub fn redirected(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    given: impl Fn(&str) -> bool,
) -> Option<PasswordRedirect> {
    let value =
        |info: &Map<String, Value>, key: &str| info.get(key).filter(|value| !value.is_null()).cloned();
    LOGINS.iter().find_map(|login| {
        let stored = value(before, login.password).filter(|password| password != "")?;
        if given(login.password) || value(after, login.password) != Some(stored) {
            return None;
        }
        let key = login.receiver.iter().find(|key| value(before, key) != value(after, key))?;
        Some(PasswordRedirect { key, password: login.password })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(before: &Value, after: &Value, given: &str) -> Option<(&'static str, &'static str)> {
        let map = |value: &Value| value.as_object().cloned().unwrap();
        let found = redirected(&map(before), &map(after), |key| key == given);
        found.map(|found| (found.key, found.password))
    }

    #[test]
    fn a_stored_password_is_sent_to_no_new_receiver() {
        for login in LOGINS {
            for key in login.receiver {
                let before = json!({login.password: "p", *key: "a", "x": 1});
                for value in [json!("b"), json!(null), json!(false)] {
                    let after = json!({login.password: "p", *key: value, "x": 1});
                    assert_eq!(change(&before, &after, ""), Some((*key, login.password)));
                    assert_eq!(change(&before, &after, login.password), None, "it was given");
                    let renewed = json!({login.password: "new", *key: value});
                    assert_eq!(change(&before, &renewed, ""), None, "it is another");
                    assert_eq!(change(&before, &json!({*key: value}), ""), None, "it is gone");
                    assert_eq!(change(&after, &before, ""), Some((*key, login.password)));
                }
                assert_eq!(change(&before, &json!({login.password: "p", *key: "a", "x": 2}), ""), None);
                assert_eq!(
                    change(&json!({login.password: "", *key: "a"}), &json!({login.password: ""}), ""),
                    None
                );
                assert_eq!(change(&json!({*key: "a"}), &json!({*key: "b"}), ""), None, "none is stored");
            }
        }
        let absent = json!({"redfish_password": "p", "redfish_verify_ca": null});
        assert_eq!(change(&absent, &json!({"redfish_password": "p"}), ""), None, "null is as absent");
    }
}
