//! The mirror: a process of its own that serves the files of a directory on loopback.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The process; it ends when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl Server {
    /// Serves the files of `dir` with `program`, which is this one.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, dir: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .arg("image-serve")
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .context("the server")?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().context("its output")?).read_line(&mut address)?;
        Ok(Server { child, address: address.trim().to_owned() })
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("bench: the server: {error}");
        }
    }
}

/// The child: prints where it listens and serves until it is killed.
///
/// # Errors
/// When it cannot listen.
pub fn child(dir: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    serve(&listener, dir)
}

/// Serves the files of `dir` with `sendfile`, each client on a thread of its own, without end.
///
/// # Errors
/// When no client can connect any more.
pub fn serve(listener: &TcpListener, dir: &Path) -> Result<()> {
    std::thread::scope(|scope| {
        for stream in listener.incoming() {
            let stream = stream?;
            scope.spawn(move || {
                // A client that goes away in the middle is its own affair.
                let _ = answer(stream, dir);
            });
        }
        Ok(())
    })
}

fn answer(mut stream: TcpStream, dir: &Path) -> Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().context("no request")??;
    let name = first.split(' ').nth(1).and_then(|path| path.strip_prefix('/')).context("no path")?.to_owned();
    let mut range = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some((from, to)) = line.strip_prefix("range: bytes=").and_then(|range| range.split_once('-')) {
            range = Some((from.parse::<u64>()?, to.parse::<u64>().ok()));
        }
    }
    let there = std::fs::read_dir(dir)?.flatten().any(|entry| entry.file_name() == *name);
    if !there {
        return Ok(write!(stream, "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?);
    }
    let mut file = File::open(dir.join(name))?;
    let all = file.metadata()?.len();
    let (from, to) = range.map_or((0, all), |(from, to)| (from, to.map_or(all, |to| all.min(to + 1))));
    let (status, more) = match range {
        None => ("200 OK", String::new()),
        Some(_) => ("206 Partial Content", format!("content-range: bytes {from}-{}/{all}\r\n", to - 1)),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\naccept-ranges: bytes\r\netag: \"1\"\r\nconnection: close\r\n{more}\r\n",
        to - from
    )?;
    file.seek(SeekFrom::Start(from))?;
    // sendfile(2): the server's own share of the processors is as small as it can be.
    std::io::copy(&mut file.take(to - from), &mut stream)?;
    Ok(())
}
