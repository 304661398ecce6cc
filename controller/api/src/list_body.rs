//! The body of a list.

use serde_json::Value;

/// `{"name": [items], "next": next}` as text, of items as texts. The items are written one after the other, so that no more than one of them is in
/// memory besides the text.
pub fn list_body(name: &str, items: impl Iterator<Item = String>, next: Option<String>) -> String {
    let next = next.map(|next| format!("\"next\":{}", Value::String(next)));
    let mut text = String::from("{");
    // In the order of their names, like every other object.
    let (before, after) = if "next" < name { (next, None) } else { (None, next) };
    if let Some(next) = before {
        text.push_str(&next);
        text.push(',');
    }
    text.push_str(&Value::from(name).to_string());
    text.push_str(":[");
    for (number, item) in items.enumerate() {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&item);
    }
    text.push(']');
    if let Some(next) = after {
        text.push(',');
        text.push_str(&next);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_is_that_of_the_object() {
        let items = [json!({"a": "\"", "b": [1, null]}), json!({}), json!({"z": 1.5})];
        for name in ["nodes", "chassis", "next "] {
            for next in [None, Some("http://h/v1?a=\"b\"".to_owned())] {
                for count in 0..=items.len() {
                    let items = &items[..count];
                    let mut whole = json!({name: items});
                    if let Some(next) = &next {
                        whole["next"] = next.as_str().into();
                    }
                    let text = list_body(name, items.iter().map(Value::to_string), next.clone());
                    assert_eq!(text, whole.to_string());
                }
            }
        }
    }
}
