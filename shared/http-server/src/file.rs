//! A file, or other content of a known length, as an answer: the whole of it, or the range that was asked for (RFC 9110,
//! section 14).

use crate::file_body::FileBody;
use crate::range::{Wanted, wanted};
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header, response};
use std::fs::File;
use tokio::io::AsyncRead;
use tokio_util::io::ReaderStream;

/// Bytes read from content that is no file at a time.
const CHUNK: usize = 256 << 10;

/// What is to be answered to GET of some content.
pub enum RangeAnswer {
    /// This: none of the content.
    Whole(Response<Body>),
    /// `count` bytes of the content from `start` on, with [`streamed`].
    Part {
        /// The head of the answer.
        head: response::Builder,
        /// The first byte.
        start: u64,
        /// How many.
        count: u64,
    },
}

/// The answer to GET of content with this length; `etag`, in its quotation marks, names it.
///
/// # Errors
/// `etag` is no header.
pub fn ranged(length: u64, etag: &str, headers: &HeaderMap) -> std::io::Result<RangeAnswer> {
    let header_text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let answer = Response::builder().header(header::ETAG, etag).header(header::ACCEPT_RANGES, "bytes");
    if header_text(header::IF_NONE_MATCH).is_some_and(|tags| tags == "*" || tags.contains(etag)) {
        return empty(answer.status(StatusCode::NOT_MODIFIED));
    }
    // A range of another version of the content would make a patchwork.
    let range = header_text(header::RANGE)
        .filter(|_| header_text(header::IF_RANGE).is_none_or(|version| version == etag));
    let answer = answer.header(header::CONTENT_TYPE, "application/octet-stream");
    let (answer, start, count) = match wanted(range, length) {
        Wanted::All => (answer.status(StatusCode::OK), 0, length),
        Wanted::Part { first, last } => {
            let content_range = format!("bytes {first}-{last}/{length}");
            let answer = answer.status(StatusCode::PARTIAL_CONTENT);
            (answer.header(header::CONTENT_RANGE, content_range), first, last - first + 1)
        }
        Wanted::Nothing => {
            let answer = answer.status(StatusCode::RANGE_NOT_SATISFIABLE);
            return empty(answer.header(header::CONTENT_RANGE, format!("bytes */{length}")));
        }
    };
    Ok(RangeAnswer::Part { head: answer.header(header::CONTENT_LENGTH, count), start, count })
}

fn empty(head: response::Builder) -> std::io::Result<RangeAnswer> {
    head.body(Body::empty()).map(RangeAnswer::Whole).map_err(std::io::Error::other)
}

/// The answer with this head and all that the reader gives.
///
/// # Errors
/// A header is none.
pub fn streamed(
    head: response::Builder,
    content: impl AsyncRead + Send + 'static,
) -> std::io::Result<Response<Body>> {
    let stream = ReaderStream::with_capacity(content, CHUNK);
    head.body(Body::from_stream(stream)).map_err(std::io::Error::other)
}

/// The answer to GET of the first `length` bytes of a file; `etag`, in its quotation marks, names them. Its body is read on
/// threads that may block.
///
/// # Errors
/// `etag` is no header.
pub fn answer(file: File, length: u64, etag: &str, headers: &HeaderMap) -> std::io::Result<Response<Body>> {
    match ranged(length, etag, headers)? {
        RangeAnswer::Whole(answer) => Ok(answer),
        RangeAnswer::Part { head, start, count } => {
            head.body(Body::new(FileBody::new(file, start, count))).map_err(std::io::Error::other)
        }
    }
}
