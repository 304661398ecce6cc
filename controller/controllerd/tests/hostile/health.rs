//! Reports to load balancers and to systemd.

use crate::controller::{Controller, command, free_port};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

/// The next word of the supervisor's socket that is not `skip`.
fn next(socket: &UnixDatagram, skip: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut buffer = [0; 64];
    loop {
        assert!(Instant::now() < deadline, "nothing but {skip}");
        let length = socket.recv(&mut buffer).expect("a word in time");
        let word = std::str::from_utf8(&buffer[..length]).unwrap();
        if word != skip {
            return word.to_owned();
        }
    }
}

#[tokio::test]
async fn the_supervisor_hears_ready_alive_and_stopping() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut command = command(dir.path(), &format!("\"127.0.0.1:{port}\""), "");
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    let controller = Controller::run(dir, port, command).await;
    assert_eq!(next(&socket, ""), "READY=1");
    for _ in 0..3 {
        assert_eq!(next(&socket, ""), "WATCHDOG=1");
    }
    kill(Pid::from_raw(controller.pid().try_into().unwrap()), Signal::SIGTERM).unwrap();
    assert_eq!(next(&socket, "WATCHDOG=1"), "STOPPING=1");
}

#[tokio::test]
async fn a_controller_that_can_write_is_ready() {
    let controller = Controller::start("").await;
    let (status, body) = controller.ask("GET", "/healthcheck", None).await.unwrap();
    assert_eq!((status, &body["ready"]), (200, &true.into()), "{body}");
    let (status, body) = controller.ask("GET", "/healthcheck/alive", None).await.unwrap();
    assert_eq!((status, &body["alive"]), (200, &true.into()), "{body}");
}
