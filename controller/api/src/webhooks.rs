//! `/v1/anneal/webhooks`: how far webhooks got the events, and the events that they were not given. Extensions of Anneal's, so no
//! microversion guards them. Webhooks are configured in the file of each controller; what is stored of them is shared.

use crate::call::{Call, empty, json};
use crate::endpoint::{Endpoint, rows};
use crate::error::{ApiError, Reply};
use crate::events::view::view as view_event;
use crate::format::{at, iso, text};
use axum::extract::Path;
use model::{DeadLetter, Delivery};
use serde_json::{Value, json};
use store::EventCursor;

/// Most dead letters in one answer.
const LETTERS: usize = 1000;

/// Endpoints of webhooks.
pub fn endpoints() -> Vec<Endpoint> {
    let rows = rows![
        GET "/v1/anneal/webhooks" 1 "anneal:webhook:get", "how far webhooks got the events" => list;
        GET "/v1/anneal/webhooks/{webhook}/dead_letters" 1 "anneal:webhook:get", "events that it was not given" => letters;
        POST "/v1/anneal/webhooks/{webhook}/dead_letters/retry" 1 "anneal:webhook:retry", "try them again" => retry;
        DELETE "/v1/anneal/webhooks/{webhook}/dead_letters/{place}" 1 "anneal:webhook:retry", "forget one" => forget;
    ];
    rows.into_iter().map(Endpoint::own).collect()
}

async fn list(call: Call) -> Reply {
    call.args.only(&[])?;
    let webhooks: Vec<Value> = call.app.store.deliveries().await?.iter().map(view).collect();
    Ok(json(200, &json!({"webhooks": webhooks})))
}

/// `GET …/dead_letters`: at most [`LETTERS`], oldest event first.
async fn letters(Path(webhook): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let letters = call.app.store.dead_letters(&webhook, false, LETTERS).await?;
    Ok(json(200, &json!({"dead_letters": letters.iter().map(view_letter).collect::<Vec<_>>()})))
}

/// `POST …/retry {"place": N}`: one, or without `place` all that [`letters`] shows.
async fn retry(Path(webhook): Path<String>, call: Call) -> Reply {
    call.args.only(&[])?;
    let given = call.arguments(&["place"])?;
    let place = match given.get("place") {
        None | Some(Value::Null) => None,
        // The value is not repeated: anything may be in it, also a password.
        Some(value) => Some(value.as_u64().ok_or_else(|| ApiError::invalid("Expected a number for place"))?),
    };
    let mut letters = call.app.store.dead_letters(&webhook, false, LETTERS).await?;
    letters.retain(|letter| place.is_none_or(|place| letter.place == place));
    if let (Some(place), []) = (place, &letters[..]) {
        return Err(absent(&webhook, place));
    }
    let retried = letters.len();
    for letter in letters {
        call.app.store.put_dead_letter(DeadLetter { retry: true, ..letter }).await?;
    }
    Ok(json(202, &json!({"retried": retried})))
}

async fn forget(Path((webhook, place)): Path<(String, String)>, call: Call) -> Reply {
    call.args.only(&[])?;
    let wanted =
        place.parse().map_err(|_| ApiError::invalid(format!("Expected a number for place: {place}")))?;
    let letters = call.app.store.dead_letters(&webhook, false, LETTERS).await?;
    if !letters.iter().any(|letter| letter.place == wanted) {
        return Err(absent(&webhook, wanted));
    }
    call.app.store.remove_dead_letter(&webhook, wanted).await?;
    Ok(empty(204, None))
}

fn absent(webhook: &str, place: u64) -> ApiError {
    ApiError::client(404, format!("Webhook {webhook} has no dead letter {place}."))
}

fn view(delivery: &Delivery) -> Value {
    json!({
        "name": delivery.webhook,
        "after": delivery.after,
        "tries": delivery.tries,
        "next_try_at": at(delivery.next_try_at),
        "last_error": text(delivery.last_error.as_deref()),
        "conductor": text(delivery.holder.as_deref()),
    })
}

fn view_letter(letter: &DeadLetter) -> Value {
    let cursor = EventCursor::behind(letter.place, letter.event.event.uuid);
    json!({
        "place": letter.place,
        "event": view_event(cursor, &letter.event),
        "given_up_at": iso(letter.at),
        "tries": letter.tries,
        "error": letter.error,
        "retry": letter.retry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;

    /// Exact bytes, on which clients rely: never edit them.
    #[test]
    fn frozen_how_far_a_webhook_is() {
        let mut delivery = Delivery::new("cmdb", "1f4-9a3b22c1".to_owned()).held("c1", Timestamp(9));
        assert_eq!(
            view(&delivery).to_string(),
            r#"{"after":"1f4-9a3b22c1","conductor":"c1","last_error":null,"name":"cmdb","next_try_at":null,"tries":0}"#
        );
        delivery.tries = 2;
        delivery.next_try_at = Some(Timestamp(2_000_000));
        delivery.last_error = Some("it answered with status 500".to_owned());
        assert_eq!(
            view(&delivery).to_string(),
            concat!(
                r#"{"after":"1f4-9a3b22c1","conductor":"c1","last_error":"it answered with status 500","name":"cmdb","#,
                r#""next_try_at":"1970-01-01T00:00:02+00:00","tries":2}"#
            )
        );
    }
}
