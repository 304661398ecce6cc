//! An HTTP server on loopback with one file and faults.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// What is done wrong with one request.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Another answer than the file.
    pub status: Option<u16>,
    /// Header lines that are added.
    pub headers: Vec<String>,
    /// The connection ends after so many bytes of the body.
    pub cut: Option<usize>,
    /// Nothing more is sent after so many bytes, until the client has gone.
    pub stall: Option<usize>,
    /// After so many bytes there is one every 20 milliseconds, and after two seconds the connection ends.
    pub trickles: Option<usize>,
    /// The length is said to be so much larger.
    pub lie: usize,
    /// The whole file is sent whatever was asked for.
    pub no_range: bool,
    /// Another entity tag.
    pub etag: Option<&'static str>,
    /// Bytes of the body that differ from here on.
    pub swapped_from: Option<usize>,
}

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub path: String,
    pub range: Option<usize>,
    pub authorization: Option<String>,
}

pub struct Mirror {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

type Behave = dyn Fn(usize, &Seen) -> Behaviour + Send + Sync;

impl Mirror {
    /// Serves `file` at every path; `behave` says what is wrong with the request of that number, from 0.
    pub fn new(file: Vec<u8>, behave: impl Fn(usize, &Seen) -> Behaviour + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let (seen, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (log, stopped, behave, file) =
            (seen.clone(), stop.clone(), Arc::new(behave) as Arc<Behave>, Arc::new(file));
        let server = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                let (log, behave, file) = (log.clone(), behave.clone(), file.clone());
                std::thread::spawn(move || answer(stream, &log, &*behave, &file));
            }
        });
        Mirror { address, seen, stop, server: Some(server) }
    }

    /// Without faults.
    pub fn good(file: Vec<u8>) -> Self {
        Self::new(file, |_, _| Behaviour::default())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        let _ = self.server.take().map(JoinHandle::join);
    }
}

fn answer(stream: TcpStream, log: &Mutex<Vec<Seen>>, behave: &Behave, file: &[u8]) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut seen = Seen {
        path: first.split(' ').nth(1).unwrap_or_default().to_owned(),
        range: None,
        authorization: None,
    };
    let mut last = file.len();
    for line in lines.by_ref().take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("range") {
            let (from, to) = value.trim_start_matches("bytes=").split_once('-').expect("a range");
            seen.range = from.parse().ok();
            last = to.parse::<usize>().map_or(last, |to| last.min(to + 1));
        }
        if name.eq_ignore_ascii_case("authorization") {
            seen.authorization = Some(value.to_owned());
        }
    }
    let number = {
        let mut log = log.lock().expect("no panic");
        log.push(seen.clone());
        log.len() - 1
    };
    let fault = behave(number, &seen);
    let _ = send(stream, &fault, &seen, file, last);
}

fn send(
    mut stream: TcpStream,
    fault: &Behaviour,
    seen: &Seen,
    file: &[u8],
    last: usize,
) -> std::io::Result<()> {
    let extra: String = fault.headers.iter().map(|header| format!("{header}\r\n")).collect();
    if let Some(status) = fault.status {
        return write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 0\r\n{extra}\r\n");
    }
    let etag = fault.etag.unwrap_or("\"1\"");
    let range = seen.range.filter(|_| !fault.no_range && etag == "\"1\"");
    let (from, to) = range.map_or((0, file.len()), |from| (from, last));
    if range.is_some() && from >= to {
        return write!(stream, "HTTP/1.1 416 X\r\ncontent-length: 0\r\n\r\n");
    }
    let mut body = file[from..to].to_vec();
    if let Some(place) = fault.swapped_from {
        body.iter_mut().skip(place.saturating_sub(from)).for_each(|byte| *byte ^= 1);
    }
    let whole = file.len() + fault.lie;
    let head = match range {
        Some(_) => format!("206 X\r\ncontent-range: bytes {from}-{}/{whole}", to - 1),
        None => "200 OK".to_owned(),
    };
    let ranges = if fault.no_range { "" } else { "accept-ranges: bytes\r\n" };
    let length = body.len() + fault.lie;
    write!(stream, "HTTP/1.1 {head}\r\ncontent-length: {length}\r\netag: {etag}\r\n{ranges}{extra}\r\n")?;
    let end = fault.cut.or(fault.stall).or(fault.trickles).unwrap_or(body.len()).min(body.len());
    stream.write_all(&body[..end])?;
    if fault.trickles.is_some() {
        for byte in body[end..].chunks(1).take(100) {
            stream.write_all(byte)?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    if fault.stall.is_some() {
        // Until the client closes its end.
        let _ = std::io::Read::read(&mut stream, &mut [0; 16]);
    }
    Ok(())
}
