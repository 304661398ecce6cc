//! Connections to agents over real TLS: kept while they serve, never mistaken for another's, given up with a
//! node that is gone.

use conductor::agent_client::AgentClient;
use conductor::decision::Outcome;
use model::Contact;
use nix::sched::{CloneFlags, unshare};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// An agent that knows one command.
struct Agent {
    address: SocketAddr,
    pem: String,
    acceptor: TlsAcceptor,
    connections: Arc<AtomicUsize>,
    // Gone when dropped, with every connection.
    tasks: JoinSet<()>,
}

impl Agent {
    async fn new() -> Self {
        let (config, pem) = contract::certificate::own().unwrap();
        let mut agent = Self {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            pem,
            acceptor: TlsAcceptor::from(config),
            connections: Arc::default(),
            tasks: JoinSet::new(),
        };
        agent.start().await;
        agent
    }

    /// Listens, at the address it had before if it had one.
    async fn start(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let (acceptor, count) = (self.acceptor.clone(), self.connections.clone());
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(stream, acceptor.clone()));
            }
        });
    }

    fn contact(&self) -> Contact {
        Contact {
            token: Some("token".into()),
            callback_url: Some(format!("https://{}", self.address)),
            verify_ca: Some(self.pem.clone()),
            ..Contact::default()
        }
    }

    fn count(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let body = r#"{"id": "one", "command_name": "execute_clean_step", "command_status": "RUNNING",
        "command_error": null, "command_result": null}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let mut head = Vec::new();
    while let Ok(byte) = stream.read_u8().await {
        head.push(byte);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            if stream.write_all(answer.as_bytes()).await.is_err() || stream.flush().await.is_err() {
                return;
            }
        }
    }
}

fn client() -> AgentClient {
    AgentClient::new(Duration::from_secs(60))
}

async fn ask(client: &AgentClient, contact: &Contact) -> Result<(), String> {
    match client.ask_command(contact, "one").await {
        Outcome::Command(_) => Ok(()),
        Outcome::Failed(error) => Err(error.text),
        other => Err(format!("{other:?}")),
    }
}

#[tokio::test]
async fn calls_to_one_agent_share_a_connection_while_there_is_one() {
    let (mut agent, client) = (Agent::new().await, client());
    for _ in 0..3 {
        ask(&client, &agent.contact()).await.unwrap();
    }
    assert_eq!(agent.count(), 1);

    agent.tasks.shutdown().await;
    assert!(ask(&client, &agent.contact()).await.unwrap_err().contains("could not be reached"));
    agent.start().await;
    ask(&client, &agent.contact()).await.unwrap();
    assert_eq!(agent.count(), 2);
}

/// The agent of the next boot has the address of the one before, and another certificate.
#[tokio::test]
async fn a_kept_connection_is_only_for_the_certificate_it_was_opened_with() {
    let (agent, next, client) = (Agent::new().await, Agent::new().await, client());
    ask(&client, &agent.contact()).await.unwrap();
    let contact = Contact { verify_ca: next.contact().verify_ca, ..agent.contact() };
    let refused = ask(&client, &contact).await.unwrap_err();
    assert!(refused.contains("is pinned"), "{refused}");
    let nobodys = Contact { verify_ca: None, ..agent.contact() };
    let refused = ask(&client, &nobodys).await.unwrap_err();
    assert!(refused.contains("none is pinned"), "{refused}");
    ask(&client, &agent.contact()).await.unwrap();
}

/// A node that loses its power sends no notice: packets to it are not acknowledged any more. Needs root,
/// for a network of its own that is then cut.
#[test]
fn a_node_that_is_gone_is_noticed_on_a_kept_connection_too() {
    let here = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let loopback = |to: &str| {
            assert!(Command::new("ip").args(["link", "set", "lo", to]).status().unwrap().success());
        };
        loopback("up");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (agent, client) = (Agent::new().await, client());
            ask(&client, &agent.contact()).await.unwrap();
            loopback("down");
            let begun = Instant::now();
            let lost = ask(&client, &agent.contact()).await.unwrap_err();
            assert!(lost.contains("could not be reached"), "{lost}");
            assert_eq!(agent.count(), 1, "it was the kept connection that was lost");
            // 5 s, and the kernel's next try after that; the call itself might take 60 s.
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        });
    });
    here.join().unwrap();
}
