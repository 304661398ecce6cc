//! Whether an answer is what the document says. As much of JSON Schema as the document uses.

use serde_json::Value;

/// The document, asked about answers.
pub struct Judge<'a> {
    pub document: &'a Value,
}

impl Judge<'_> {
    /// The path of the document that a request's path means; names as it has most literal segments.
    pub fn path(&self, uri: &str) -> Option<String> {
        let plain = uri.split('?').next().unwrap_or_default();
        // Old microversions take it from any path.
        let plain = plain.strip_suffix(".json").unwrap_or(plain);
        let mut given: Vec<_> = plain.split('/').filter(|segment| !segment.is_empty()).collect();
        if !given.is_empty() && given[0] != "v1" {
            given.insert(0, "v1");
        }
        let paths = self.document["paths"].as_object().expect("paths").keys();
        let fits = |path: &&String| {
            let known: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
            known.len() == given.len()
                && known.iter().zip(&given).all(|(known, given)| known.starts_with('{') || known == given)
        };
        paths.filter(fits).min_by_key(|path| path.matches('{').count()).cloned()
    }

    /// Why a success is not what the document says.
    pub fn success(&self, method: &str, path: &str, status: u16, body: &str) -> Result<(), String> {
        let responses = &self.document["paths"][path][method.to_lowercase()]["responses"];
        let response = match (&responses[status.to_string()], &responses["2XX"]) {
            (Value::Null, Value::Null) => return Err(format!("{status} is not in the document")),
            (Value::Null, any) => any,
            (exact, _) => exact,
        };
        let Some(content) = response["content"].as_object() else {
            return if body.is_empty() {
                Ok(())
            } else {
                Err("a body that the document does not describe".into())
            };
        };
        match content.get("application/json") {
            None => Ok(()),
            // An answer that anything may be may also be nothing.
            Some(json) if body.is_empty() && json["schema"] == serde_json::json!({}) => Ok(()),
            Some(json) => {
                let body = serde_json::from_str(body).map_err(|error| format!("no JSON: {error}"))?;
                self.fits(&json["schema"], &body, "")
            }
        }
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        if let Some(target) = schema["$ref"].as_str() {
            let schema = self.document.pointer(target.trim_start_matches('#')).expect("no loose reference");
            return self.fits(schema, value, at);
        }
        if let Some(choices) = schema["anyOf"].as_array()
            && !choices.iter().any(|choice| self.fits(choice, value, at).is_ok())
        {
            return Err(format!("{at}: {value} is none of what it may be"));
        }
        if let Some(known) = schema["enum"].as_array()
            && !known.contains(value)
        {
            return Err(format!("{at}: {value} is not one of {known:?}"));
        }
        let is = |name: &Value| match name.as_str().unwrap_or_default() {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        let typed = match &schema["type"] {
            Value::Null => true,
            Value::Array(names) => names.iter().any(is),
            name => is(name),
        };
        if !typed {
            return Err(format!("{at}: {value} is no {}", schema["type"]));
        }
        if let (Some("uuid"), Some(text)) = (schema["format"].as_str(), value.as_str())
            && uuid::Uuid::parse_str(text).is_err()
        {
            return Err(format!("{at}: {text} is no UUID"));
        }
        match value {
            Value::Array(items) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.fits(&schema["items"], item, &format!("{at}/{index}"))),
            Value::Object(fields) => {
                for name in schema["required"].as_array().into_iter().flatten() {
                    if !fields.contains_key(name.as_str().unwrap_or_default()) {
                        return Err(format!("{at}: {name} is missing"));
                    }
                }
                fields.iter().try_for_each(|(name, item)| {
                    let at = format!("{at}/{name}");
                    match (&schema["properties"][name], &schema["additionalProperties"]) {
                        (Value::Null, Value::Bool(false)) => Err(format!("{at} is not in the document")),
                        (Value::Null, others) => self.fits(others, item, &at),
                        (known, _) => self.fits(known, item, &at),
                    }
                })
            }
            _ => Ok(()),
        }
    }
}
