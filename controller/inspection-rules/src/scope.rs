//! What templates see, and what they become.

use crate::attribute;
use crate::budget::Budget;
use crate::findings::Findings;
use crate::python::{MASK, is_hidden, repr, text};
use crate::signature::OperationError;
use crate::template::{Field, Part, Step, parse};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What the templates of one operation see.
pub struct Scope<'a> {
    /// What was found, as the rules before have left it.
    pub found: &'a Findings,
    /// The item of this turn of its loop.
    pub item: Option<&'a Value>,
    /// A field that is missing makes the whole nothing, and not itself.
    pub missing_is_none: bool,
    /// What may still be done.
    pub budget: &'a Budget,
}

/// Why a template was not filled in.
enum Gap {
    /// A field is not there (Python: `KeyError`).
    Missing,
    /// It cannot be: no such attribute, no such index, no template (any other error).
    Wrong,
    /// It is not to be.
    Fails(OperationError),
}

/// A template that was filled in.
struct Filled {
    text: String,
    /// The same to be filled in once more: what did not come of the rule itself has its braces doubled, so that
    /// no machine can say `{node.driver_info[…]}`.
    again: String,
}

impl Scope<'_> {
    /// A value of a rule with its templates filled in. In a loop texts are filled in twice, as in Ironic, so that items
    /// can be templates.
    pub fn fill(&self, value: &Value) -> Result<Value, OperationError> {
        self.budget.work(1)?;
        match value {
            Value::String(text) => self.fill_text(text, self.item.is_some()),
            Value::Array(items) => {
                let fill = |item: &Value| match item {
                    Value::String(text) => self.fill_text(text, false),
                    other => self.fill(other),
                };
                items.iter().map(fill).collect::<Result<_, _>>().map(Value::Array)
            }
            Value::Object(fields) => {
                let mut filled = Map::new();
                for (key, value) in fields {
                    let key = self.fill_text(key, false)?;
                    filled.insert(text(&key, false), self.fill(value)?);
                }
                Ok(Value::Object(filled))
            }
            other => Ok(other.clone()),
        }
    }

    /// A text with its fields filled in, or as it is where that is not possible.
    fn fill_text(&self, template: &str, twice: bool) -> Result<Value, OperationError> {
        let filled = match self.format(template) {
            Ok(filled) => filled,
            Err(Gap::Missing) if self.missing_is_none => return Ok(Value::Null),
            Err(Gap::Missing | Gap::Wrong) => return Ok(Value::String(template.to_owned())),
            Err(Gap::Fails(why)) => return Err(why),
        };
        if !twice {
            return Ok(Value::String(filled.text));
        }
        match self.format(&filled.again) {
            Ok(again) => Ok(Value::String(again.text)),
            Err(Gap::Missing) if self.missing_is_none => Ok(Value::Null),
            Err(Gap::Missing | Gap::Wrong) => Ok(Value::String(filled.text)),
            Err(Gap::Fails(why)) => Err(why),
        }
    }

    fn format(&self, template: &str) -> Result<Filled, Gap> {
        let mut filled = Filled { text: String::new(), again: String::new() };
        let mut put = |text: &str, of_the_rule: bool| {
            filled.text.push_str(text);
            match of_the_rule {
                true => filled.again.push_str(text),
                false => filled.again.push_str(&text.replace('{', "{{").replace('}', "}}")),
            }
            self.budget.work(text.len()).map_err(Gap::Fails)
        };
        for part in parse(template).ok_or(Gap::Wrong)? {
            match part {
                Part::Text(text) => put(&text, true)?,
                Part::Field(field) => {
                    let value = self.field(&field)?;
                    if field.strange {
                        return Err(Gap::Fails(OperationError(
                            "format specifications are not supported".to_owned(),
                        )));
                    }
                    let masked = field.root != "item";
                    let shown = if field.repr { repr(&value, masked) } else { text(&value, masked) };
                    put(&shown, field.root == "item")?;
                }
            }
        }
        Ok(filled)
    }

    /// The value of a field.
    fn field(&self, field: &Field) -> Result<Cow<'_, Value>, Gap> {
        let (value, way) = match (field.root, field.way.split_first()) {
            ("item", _) => (Cow::Borrowed(self.item.ok_or(Gap::Missing)?), &field.way[..]),
            ("inventory", _) => (Cow::Borrowed(&self.found.inventory), &field.way[..]),
            ("plugin_data", _) => (Cow::Borrowed(&self.found.plugin_data), &field.way[..]),
            ("node", Some((Step::Attribute(name) | Step::Key(name), way))) => {
                (Cow::Owned(attribute::shown(&self.found.node, name).ok_or(Gap::Wrong)?), way)
            }
            ("node", _) => return Err(Gap::Wrong),
            // Numbers are places in a list of arguments, of which there are none.
            (root, _) if root.is_empty() || root.bytes().all(|byte| byte.is_ascii_digit()) => {
                return Err(Gap::Wrong);
            }
            _ => return Err(Gap::Missing),
        };
        let masked = field.root != "item";
        match value {
            Cow::Borrowed(value) => walk(value, way, masked),
            Cow::Owned(value) => walk(&value, way, masked).map(|value| Cow::Owned(value.into_owned())),
        }
    }
}

fn walk<'a>(mut value: &'a Value, way: &[Step], masked: bool) -> Result<Cow<'a, Value>, Gap> {
    for (at, step) in way.iter().enumerate() {
        value = match (value, step) {
            (Value::Object(_), Step::Key(key)) if masked && is_hidden(key) => {
                let mask = Value::String(MASK.to_owned());
                return walk(&mask, &way[at + 1..], masked).map(|value| Cow::Owned(value.into_owned()));
            }
            (Value::Object(fields), Step::Key(key)) => fields.get(*key).ok_or(Gap::Missing)?,
            (Value::Object(_), Step::Index(_)) => return Err(Gap::Missing),
            (Value::Array(items), Step::Index(index)) => items.get(*index).ok_or(Gap::Wrong)?,
            (Value::String(text), Step::Index(index)) => {
                let letter = text.chars().nth(*index).ok_or(Gap::Wrong)?;
                let letter = Value::String(letter.to_string());
                return walk(&letter, &way[at + 1..], masked).map(|value| Cow::Owned(value.into_owned()));
            }
            _ => return Err(Gap::Wrong),
        };
    }
    Ok(Cow::Borrowed(value))
}
