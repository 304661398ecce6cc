//! Which fields are shown: the arguments `fields` and `detail` of a query.

use crate::call::Call;
use crate::error::ApiError;

/// The fields that the client wants to see, if it says so; `check` rejects those that are unknown or too new.
pub fn fields(
    call: &Call,
    check: impl FnOnce(&[String]) -> Result<(), ApiError>,
) -> Result<Option<Vec<String>>, ApiError> {
    let Some(wanted) = call.args.list("fields") else { return Ok(None) };
    call.version.needs(8)?;
    check(&wanted)?;
    Ok(Some(wanted))
}

/// The fields that a list shows; none: all. Without arguments these are `short`. The argument `detail` exists since a
/// minor version, or never.
pub fn in_list(
    call: &Call,
    detail_since: Option<u16>,
    short: &[&str],
    check: impl FnOnce(&[String]) -> Result<(), ApiError>,
) -> Result<Option<Vec<String>>, ApiError> {
    let detail = match detail_since {
        None => false,
        Some(since) => {
            let detail = call.args.boolean("detail")?;
            if detail.is_some() && !call.version.has(since) {
                let detail = call.args.text("detail").unwrap_or_default();
                return Err(ApiError::invalid(format!("Invalid query parameter ?detail={detail} received.")));
            }
            detail.unwrap_or(false)
        }
    };
    match (fields(call, check)?, detail) {
        (Some(_), true) => {
            Err(ApiError::invalid("Can not specify ?detail=True and fields in the same request."))
        }
        (None, true) => Ok(None),
        (wanted, false) => {
            Ok(Some(wanted.unwrap_or_else(|| short.iter().map(|name| (*name).into()).collect())))
        }
    }
}

/// All fields, for a path that ends in `detail` and takes no `fields`.
pub fn all(call: &Call) -> Result<Option<Vec<String>>, ApiError> {
    match call.args.text("fields") {
        Some(_) => Err(ApiError::invalid("Unexpected arguments: fields")),
        None => Ok(None),
    }
}

/// 400 if some of the wanted fields are not `known`.
pub fn check_known(wanted: &[String], known: impl Fn(&str) -> bool) -> Result<(), ApiError> {
    let unknown: Vec<_> = wanted.iter().map(String::as_str).filter(|name| !known(name)).collect();
    if unknown.is_empty() { Ok(()) } else { Err(unknown_fields(&unknown)) }
}

/// 400 for fields that do not exist.
pub fn unknown_fields(unknown: &[&str]) -> ApiError {
    ApiError::invalid(format!("Field(s) \"{}\" are not valid", unknown.join(", ")))
}
