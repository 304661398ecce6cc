//! Events as a stream of server-sent events (WHATWG HTML, section 9.2).

use super::filter::Filter;
use super::view;
use crate::call::Call;
use crate::error::Reply;
use crate::server_sent::{self, COMMENT, KEEP_ALIVE, LIFETIME, PAUSE, RETRY};
use crate::stream_places::Listener;
use axum::body::Bytes;
use futures_util::stream::unfold;
use std::convert::Infallible;
use store::{EventCursor, EventPage, StoreError};
use tokio::time::Instant;

/// Most events in one part.
const PART: usize = 100;
/// What a stream begins with, behind the time after which a client comes back.
const OPENING: &str = ": events\n\n";

/// One stream.
struct Stream {
    call: Call,
    filter: Filter,
    after: Option<EventCursor>,
    listener: Listener<u64>,
    until: Instant,
    next: Next,
}

/// What a stream does next.
enum Next {
    /// It begins with this page, which was read to see that the cursor is good.
    Open(EventPage),
    /// It sends what is there.
    Read,
    /// It waits for events.
    Wait,
    End,
}

/// The answer.
pub async fn answer(call: Call, filter: Filter, after: Option<EventCursor>) -> Reply {
    let Some(listener) = call.app.events.listen(&call.unscoped_app.store) else {
        return Ok(server_sent::busy("events"));
    };
    let page = call.app.store.events(after, PART).await?;
    let until = Instant::now() + LIFETIME;
    let stream = Stream { call, filter, after, listener, until, next: Next::Open(page) };
    let parts = unfold(stream, |mut stream| async move {
        let part = stream.part().await?;
        Some((Ok::<_, Infallible>(Bytes::from(part)), stream))
    });
    Ok(server_sent::answer(parts))
}

impl Stream {
    /// The next part of the answer; `None`: it is over.
    async fn part(&mut self) -> Option<String> {
        loop {
            match std::mem::replace(&mut self.next, Next::Read) {
                Next::Open(page) => return Some(format!("{RETRY}{OPENING}{}", self.sent(page, true))),
                Next::Read => match self.call.app.store.events(self.after, PART).await {
                    Ok(page) => {
                        let part = self.sent(page, false);
                        if !part.is_empty() {
                            return Some(part);
                        }
                    }
                    Err(StoreError::CursorGone { oldest }) => {
                        self.next = Next::End;
                        return Some(format!("event: gone\ndata: {{\"oldest\":\"{oldest}\"}}\n\n"));
                    }
                    Err(error) => {
                        tracing::warn!(error = %error.chain(), "a stream of events cannot read them; trying again");
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Next::Wait => {
                    if Instant::now() >= self.until {
                        return None;
                    }
                    match tokio::time::timeout(KEEP_ALIVE, self.listener.changed()).await {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(_) => {
                            self.next = Next::Wait;
                            return Some(COMMENT.to_owned());
                        }
                    }
                }
                Next::End => return None,
            }
        }
    }

    /// A page as it is sent; then the stream goes on behind it. The first one says in any case where the client stands.
    fn sent(&mut self, page: EventPage, first: bool) -> String {
        let mut part = String::new();
        let mut newest_sent = None;
        for (cursor, event) in &page.events {
            if self.filter.lets_pass(&self.call, event) {
                part.push_str(&format!("id: {cursor}\ndata: {}\n\n", view::view(*cursor, event)));
                newest_sent = Some(*cursor);
            }
        }
        if newest_sent != Some(page.next) && (first || self.after != Some(page.next)) {
            // A client that comes back need not begin with what was not for it.
            part.push_str(&format!("id: {}\n\n", page.next));
        }
        self.after = Some(page.next);
        self.next = if page.more { Next::Read } else { Next::Wait };
        part
    }
}
