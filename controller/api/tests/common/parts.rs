//! A stream of server-sent events.

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use futures_util::StreamExt;
use std::time::Duration;
use tower::ServiceExt;

/// The parts of a stream, as they come.
pub struct Parts(BodyDataStream);

impl Parts {
    /// Ask for a stream, with these headers.
    pub async fn open(router: &Router, path: &str, headers: &[(&str, &str)]) -> Self {
        let request = Request::get(path)
            .header("accept", "text/event-stream")
            .header("X-OpenStack-Ironic-API-Version", "1.115");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self(answer.into_body().into_data_stream())
    }

    /// The next part; `None`: the stream has ended.
    pub async fn next(&mut self) -> Option<String> {
        let next = tokio::time::timeout(Duration::from_secs(60), self.0.next()).await.expect("a part");
        next.map(|part| String::from_utf8(part.unwrap().to_vec()).unwrap())
    }

    /// The next part, if one comes within this time.
    pub async fn within(&mut self, time: Duration) -> Option<String> {
        let next = tokio::time::timeout(time, self.0.next()).await.ok()??;
        Some(String::from_utf8(next.unwrap().to_vec()).unwrap())
    }
}
