//! A file as an answer: the whole of it, or the range that was asked for (RFC 9110, section 14).

use crate::range::{Wanted, wanted};
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

/// Bytes read from a file at a time.
const CHUNK: usize = 256 << 10;

/// The answer to GET of the first `length` bytes of a file; `etag`, in its quotation marks, names them.
///
/// # Errors
/// The file cannot be read at that place.
pub async fn answer(
    mut file: File,
    length: u64,
    etag: &str,
    headers: &HeaderMap,
) -> std::io::Result<Response<Body>> {
    let header_text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let answer = Response::builder().header(header::ETAG, etag).header(header::ACCEPT_RANGES, "bytes");
    if header_text(header::IF_NONE_MATCH).is_some_and(|tags| tags == "*" || tags.contains(etag)) {
        return answer.status(StatusCode::NOT_MODIFIED).body(Body::empty()).map_err(std::io::Error::other);
    }
    // A range of another version of the file would make a patchwork.
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
            return answer
                .header(header::CONTENT_RANGE, format!("bytes */{length}"))
                .body(Body::empty())
                .map_err(std::io::Error::other);
        }
    };
    file.seek(std::io::SeekFrom::Start(start)).await?;
    let stream = ReaderStream::with_capacity(file.take(count), CHUNK);
    answer
        .header(header::CONTENT_LENGTH, count)
        .body(Body::from_stream(stream))
        .map_err(std::io::Error::other)
}
