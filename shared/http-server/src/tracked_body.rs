//! Bodies that report when they end.

use crate::activity::{Activity, Phase};
use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A body at whose end the connection goes from one phase to the next.
pub struct TrackedBody<B> {
    body: B,
    end: End,
}

/// The change of phase, made once.
struct End(Option<(Arc<Activity>, Message)>);

/// Whose body it is.
#[derive(Clone, Copy)]
enum Message {
    Request,
    Response,
}

impl<B: HttpBody> TrackedBody<B> {
    /// The body of a request: from now until its end the connection is in [`Phase::Body`].
    pub fn request(body: B, activity: Arc<Activity>) -> Self {
        let mut end = End(Some((activity.clone(), Message::Request)));
        activity.enter(Phase::Body);
        if body.is_end_stream() {
            end.reached();
        }
        Self { body, end }
    }

    /// The body of a response: at its end the connection becomes idle.
    pub fn response(body: B, activity: Arc<Activity>) -> Self {
        Self { body, end: End(Some((activity, Message::Response))) }
    }
}

impl End {
    fn reached(&mut self) {
        match self.0.take() {
            Some((activity, Message::Request)) => activity.leave(Phase::Body, Phase::Answering),
            Some((activity, Message::Response)) => activity.enter(Phase::Idle),
            None => {}
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.reached();
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = Pin::new(&mut this.body).poll_frame(context);
        // The end of a request's body is its last byte; a response ends when it is dropped, after its last byte was sent.
        if matches!(this.end.0, Some((_, Message::Request)))
            && (matches!(frame, Poll::Ready(None)) || this.body.is_end_stream())
        {
            this.end.reached();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
