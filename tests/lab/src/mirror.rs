//! A web server with one image that does not behave: slow, silent, broken, or another file than before.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// How much is sent at once.
const PIECE: usize = 64 << 10;

/// What happens to one request.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Bytes a second, where the server is slow.
    pub rate: Option<usize>,
    /// The connection is dropped after so many bytes of the body.
    pub drops: Option<usize>,
    /// Nothing more is sent after so many bytes of the body, until the client has gone.
    pub stalls: Option<usize>,
    /// Every byte differs from that of the image.
    pub other_bytes: bool,
    /// The file has another entity tag and this many bytes more; a request for a part gets the whole.
    pub other_file: Option<usize>,
}

/// One request and its end.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Where the part that was asked for begins; `None`: the whole.
    pub from: Option<usize>,
    /// Bytes of the body that were sent.
    pub sent: usize,
    /// When the connection ended; `None`: it is open.
    pub ended: Option<Instant>,
}

/// Serves one image; stops when dropped.
#[derive(Debug)]
pub struct Mirror {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _server: AbortOnDropHandle<()>,
}

impl Mirror {
    /// Serves `image`; `behave` says what happens to the request of that number, from 0, and is asked again before each piece.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn start(
        host: Ipv4Addr,
        image: Vec<u8>,
        behave: impl Fn(usize) -> Behaviour + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener = TcpListener::bind((host, 0)).await.context("the server of the image")?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, image, behave) = (Arc::clone(&seen), Arc::new(image), Arc::new(behave));
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, image, behave) = (Arc::clone(&log), Arc::clone(&image), Arc::clone(&behave));
                tokio::spawn(async move {
                    // A client that goes away, and a drop of ours, end a connection alike.
                    let _ = answer(stream, &image, &*behave, &log).await;
                });
            }
        });
        Ok(Self { address, seen, _server: AbortOnDropHandle::new(server) })
    }

    /// URL of the image.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/image", self.address)
    }

    /// The requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(
    stream: TcpStream,
    image: &[u8],
    behave: &(impl Fn(usize) -> Behaviour + Sync),
    log: &Mutex<Vec<Seen>>,
) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let mut from = None;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let value = line.to_ascii_lowercase();
        if let Some(range) = value.strip_prefix("range: bytes=") {
            from = range.strip_suffix('-').and_then(|from| from.parse().ok());
        }
    }
    let number = {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(Seen { from, sent: 0, ended: None });
        log.len() - 1
    };
    let note = |change: &dyn Fn(&mut Seen)| {
        if let Some(seen) = log.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            change(seen);
        }
    };
    let sent = send(&mut stream, image, from, || behave(number), |sent| note(&|seen| seen.sent = sent)).await;
    note(&|seen| seen.ended = Some(Instant::now()));
    sent
}

async fn send(
    stream: &mut BufReader<TcpStream>,
    image: &[u8],
    from: Option<usize>,
    behave: impl Fn() -> Behaviour,
    sent: impl Fn(usize),
) -> Result<()> {
    let first = behave();
    let (head, body) = response(image, from, &first);
    stream.write_all(head.as_bytes()).await?;
    let mut at = 0;
    while at < body.len() {
        let now = behave();
        if now.drops.is_some_and(|drops| at >= drops) {
            return Ok(());
        }
        if now.stalls.is_some_and(|stalls| at >= stalls) {
            // Until the client closes its end.
            let _gone = stream.read(&mut [0; 16]).await?;
            return Ok(());
        }
        let piece = &body[at..body.len().min(at + PIECE)];
        stream.write_all(piece).await?;
        at += piece.len();
        sent(at);
        if let Some(rate) = now.rate {
            sleep(Duration::from_secs_f64(1.0) * u32::try_from(piece.len())? / u32::try_from(rate)?).await;
        }
    }
    stream.shutdown().await?;
    Ok(())
}

/// Head and body of an answer.
fn response(image: &[u8], from: Option<usize>, behaviour: &Behaviour) -> (String, Vec<u8>) {
    let tag = if behaviour.other_file.is_some() { "other" } else { "image" };
    let from = from.filter(|&from| behaviour.other_file.is_none() && from < image.len());
    let mut body = image[from.unwrap_or(0)..].to_vec();
    body.resize(body.len() + behaviour.other_file.unwrap_or(0), 0);
    if behaviour.other_bytes {
        body.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let status = match from {
        Some(from) => {
            format!("206 Partial Content\r\ncontent-range: bytes {from}-{}/{}", image.len() - 1, image.len())
        }
        None => "200 OK".to_owned(),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\netag: \"{tag}\"\r\naccept-ranges: bytes\r\nconnection: close\r\n\r\n"
    );
    (head, body)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(
        mirror: &Mirror,
        from: Option<usize>,
    ) -> (u16, Option<String>, Result<Vec<u8>, reqwest::Error>) {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut request = reqwest::Client::new().get(mirror.url());
        if let Some(from) = from {
            request = request.header("range", format!("bytes={from}-"));
        }
        let answer = request.send().await.unwrap();
        let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        (answer.status().as_u16(), tag, answer.bytes().await.map(|bytes| bytes.to_vec()))
    }

    #[tokio::test]
    async fn each_request_is_treated_as_it_is_said() {
        let image: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
        let mirror = Mirror::start(Ipv4Addr::LOCALHOST, image.clone(), |number| match number {
            0 => Behaviour { drops: Some(100_000), ..Behaviour::default() },
            1 => Behaviour::default(),
            2 => Behaviour { other_bytes: true, ..Behaviour::default() },
            _ => Behaviour { other_file: Some(7), ..Behaviour::default() },
        });
        let mirror = mirror.await.unwrap();
        assert!(asked(&mirror, None).await.2.is_err(), "the connection was not dropped");
        let (status, tag, body) = asked(&mirror, Some(1000)).await;
        assert_eq!((status, tag.as_deref()), (206, Some("\"image\"")));
        assert!(body.unwrap() == image[1000..]);
        let (status, _, body) = asked(&mirror, Some(1000)).await;
        assert_eq!(status, 206);
        assert!(body.unwrap().iter().zip(&image[1000..]).all(|(sent, is)| *sent == !*is));
        let (status, tag, body) = asked(&mirror, Some(1000)).await;
        assert_eq!((status, tag.as_deref(), body.unwrap().len()), (200, Some("\"other\""), image.len() + 7));
        let seen = mirror.seen();
        assert_eq!((seen.len(), seen[0].from, seen[1].from), (4, None, Some(1000)));
        assert!(seen[0].sent >= 100_000 && seen[0].ended.is_some(), "{:?}", seen[0]);
    }
}
