//! A value of a column.

use crate::text;
use std::error::Error;
use store::FieldValue;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use uuid::Uuid;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `text`.
    Text,
    /// `bigint`.
    Number,
    /// `boolean`.
    Bool,
    /// `uuid`.
    Uuid,
}

/// A value of a column, or none.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(Option<String>),
    Number(Option<i64>),
    Bool(Option<bool>),
    Uuid(Option<Uuid>),
}

impl Value {
    /// A text from outside.
    pub fn text(text: &str) -> Self {
        Self::Text(Some(text::stored(text).into_owned()))
    }

    /// No value of a kind.
    pub fn none(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(None),
            Kind::Number => Self::Number(None),
            Kind::Bool => Self::Bool(None),
            Kind::Uuid => Self::Uuid(None),
        }
    }

    /// The value of a field, in a column of this kind; `None` if no row of such a column can have it.
    pub fn of(kind: Kind, field: &FieldValue) -> Option<Self> {
        match (kind, field) {
            (kind, FieldValue::Null) => Some(Self::none(kind)),
            (Kind::Text, FieldValue::Text(value)) => Some(Self::text(value)),
            (Kind::Number, FieldValue::Number(value)) => Some(Self::Number(Some(*value))),
            (Kind::Bool, FieldValue::Bool(value)) => Some(Self::Bool(Some(*value))),
            (Kind::Uuid, FieldValue::Text(value)) => {
                // Only as the field writes it: another letter case is another text.
                let uuid = Uuid::parse_str(value).ok().filter(|uuid| uuid.to_string() == *value)?;
                Some(Self::Uuid(Some(uuid)))
            }
            _ => None,
        }
    }

    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Text(None) | Self::Number(None) | Self::Bool(None) | Self::Uuid(None))
    }

    /// Its type in PostgreSQL.
    pub fn sql_type(&self) -> Type {
        match self {
            Self::Text(_) => Type::TEXT,
            Self::Number(_) => Type::INT8,
            Self::Bool(_) => Type::BOOL,
            Self::Uuid(_) => Type::UUID,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Text(value) => value.to_sql(ty, out),
            Self::Number(value) => value.to_sql(ty, out),
            Self::Bool(value) => value.to_sql(ty, out),
            Self::Uuid(value) => value.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::TEXT, Type::INT8, Type::BOOL, Type::UUID].contains(ty)
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_no_row_can_have_is_no_value() {
        let uuid = Uuid::from_u128(0xab << 64);
        assert_eq!(Value::of(Kind::Uuid, &FieldValue::Text(uuid.to_string())), Some(Value::Uuid(Some(uuid))));
        let upper = FieldValue::Text(uuid.to_string().to_uppercase());
        for (kind, field) in [
            (Kind::Uuid, upper),
            (Kind::Uuid, "a".into()),
            (Kind::Bool, "a".into()),
            (Kind::Number, FieldValue::Bool(true)),
            (Kind::Text, FieldValue::Number(1)),
        ] {
            assert_eq!(Value::of(kind, &field), None, "{kind:?} {field:?}");
        }
        for kind in [Kind::Text, Kind::Number, Kind::Bool, Kind::Uuid] {
            assert!(Value::of(kind, &FieldValue::Null).unwrap().is_none());
        }
        assert_eq!(Value::of(Kind::Text, &"a\0".into()), Some(Value::Text(Some("a\u{1}\u{1}".to_owned()))));
    }
}
