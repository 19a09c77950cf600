//! A page over HTTP/1.1: `GET /metrics`, and at `/` what this is. It reads no more of a request than its head, waits for nobody long,
//! and answers each connection once.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use super::text::Form;
use super::totals::Totals;

/// Bytes of a request's head at most. Ours, as other servers have it: Prometheus sends some 400.
const MOST_HEAD: usize = 8 << 10;

/// How long a client may take for its request, and for reading the answer. Ours: Prometheus gives a scrape 10 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers at a time. Ours: two Prometheus servers and a person.
const THREADS: usize = 4;

/// Why it cannot listen.
#[derive(Debug, Error)]
pub enum ServeError {
    /// It is no address.
    #[error(
        "`{0}` is no address to listen at: write HOST:PORT, as 127.0.0.1:9464, or :9464 for all addresses"
    )]
    Address(String),
    /// Somebody has it.
    #[error("{0} is in use: another program listens there (`ss -ltnp 'sport = :{port}'` names it); choose another one, or port 0 for any that is free", port = .0.port())]
    InUse(SocketAddr),
    /// It is not allowed.
    #[error(
        "may not listen at {0}: ports below 1024 need CAP_NET_BIND_SERVICE; choose a higher one"
    )]
    Refused(SocketAddr),
    /// It is none of this host's.
    #[error(
        "{0} is no address of this host: `ip address` lists those it has; 0.0.0.0 is all of them"
    )]
    NotHere(SocketAddr),
    /// Something else.
    #[error("cannot listen at {0}: {1}")]
    Other(SocketAddr, io::Error),
}

/// A server that answers with what was published last.
#[derive(Debug)]
pub struct Server {
    local: SocketAddr,
    listener: Arc<TcpListener>,
    page: Arc<Mutex<Arc<Totals>>>,
}

impl Server {
    /// Listens at `address`; who asks waits until [`Server::answer`].
    ///
    /// # Errors
    ///
    /// Where nobody may listen there, with what to try.
    pub fn open(address: &str) -> Result<Self, ServeError> {
        let address = resolve(address).ok_or_else(|| ServeError::Address(address.to_owned()))?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => ServeError::InUse(address),
            io::ErrorKind::PermissionDenied => ServeError::Refused(address),
            io::ErrorKind::AddrNotAvailable => ServeError::NotHere(address),
            _ => ServeError::Other(address, error),
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        let page = Arc::new(Mutex::new(Arc::new(Totals::default())));
        Ok(Self { local, listener: Arc::new(listener), page })
    }

    /// Answers from now on, as long as the program runs.
    ///
    /// # Errors
    /// There is no room for a thread.
    pub fn answer(&self) -> Result<(), ServeError> {
        for _ in 0..THREADS {
            let (listener, page) = (Arc::clone(&self.listener), Arc::clone(&self.page));
            let work = move || serve(&listener, &page);
            let started = thread::Builder::new().name("metrics".to_owned()).spawn(work);
            started.map_err(|error| ServeError::Other(self.local, error))?;
        }
        Ok(())
    }

    /// Where it listens.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// What is answered from now on.
    pub fn publish(&self, totals: Totals) {
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(totals);
    }
}

fn resolve(address: &str) -> Option<SocketAddr> {
    if let Some(port) = address.strip_prefix(':') {
        return Some(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), port.parse().ok()?));
    }
    address.to_socket_addrs().ok()?.next()
}

fn serve(listener: &TcpListener, page: &Mutex<Arc<Totals>>) {
    loop {
        match listener.accept() {
            // A client that goes away is its own affair.
            Ok((client, _)) => drop(answer(&client, page)),
            // No descriptors are left, or the like: it may pass.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(mut client: &TcpStream, page: &Mutex<Arc<Totals>>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(client)?;
    let totals = Arc::clone(&page.lock().unwrap_or_else(PoisonError::into_inner));
    let answer = respond(&head, |form| totals.render(form));
    write_within(client, &answer)?;
    client.flush()?;
    client.shutdown(std::net::Shutdown::Write)
}

/// A request's head, or as much of it as came in time.
fn read_head(mut client: &TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    while head.len() <= MOST_HEAD && !is_whole(&head) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut buffer)? {
            0 => break,
            read => head.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(head)
}

fn write_within(mut client: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut rest = bytes;
    while !rest.is_empty() {
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let written = client.write(rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

fn is_whole(head: &[u8]) -> bool {
    head.windows(4).any(|four| four == b"\r\n\r\n") || head.windows(2).any(|two| two == b"\n\n")
}

/// What is answered to `head`.
fn respond(head: &[u8], render: impl Fn(Form) -> String) -> Vec<u8> {
    const PLAIN: &str = "text/plain; charset=utf-8";
    if head.len() > MOST_HEAD {
        return message(
            "431 Request Header Fields Too Large",
            PLAIN,
            "the request is too long\n",
            true,
        );
    }
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let is_http = version.is_some_and(|version| version.starts_with("HTTP/1."));
    let (Some(method), Some(target), true, true) = (method, target, is_http, is_whole(head)) else {
        return message("400 Bad Request", PLAIN, "this is no request of HTTP/1.1\n", true);
    };
    let has_body = match method {
        "GET" => true,
        "HEAD" => false,
        _ => return message("405 Method Not Allowed", PLAIN, "only GET is answered\n", true),
    };
    match target.split('?').next() {
        Some("/metrics") => {
            let accept = lines.filter_map(|line| line.split_once(':'));
            let accept = accept.filter(|(name, _)| name.trim().eq_ignore_ascii_case("accept"));
            let accept: String = accept.map(|(_, value)| value).collect();
            let form = Form::accepted(&accept);
            message("200 OK", form.content_type(), &render(form), has_body)
        }
        Some("/") => message(
            "200 OK",
            PLAIN,
            "tcpwhy: what TCP connections wait for, as metrics at /metrics\n",
            has_body,
        ),
        _ => {
            message("404 Not Found", PLAIN, "nothing is here; metrics are at /metrics\n", has_body)
        }
    }
}

fn message(status: &str, kind: &str, body: &str, has_body: bool) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{allow}X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let body = if has_body { body } else { "" };
    [head.as_bytes(), body.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(request: &str) -> String {
        let page = |form: Form| format!("page of {form:?}\n");
        String::from_utf8(respond(request.as_bytes(), page)).expect("text")
    }

    fn status(request: &str) -> String {
        said(request).lines().next().expect("a line").to_owned()
    }

    #[test]
    fn only_get_of_two_pages_is_answered() {
        assert_eq!(status("GET /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status("GET /etc/passwd HTTP/1.1\r\n\r\n"), "HTTP/1.1 404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
        assert_eq!(status("GET /metrics HTTP/1.1\r\n"), "HTTP/1.1 400 Bad Request", "cut short");
        assert_eq!(status("\0\0\r\n\r\n"), "HTTP/1.1 400 Bad Request");
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(MOST_HEAD));
        assert_eq!(status(&long), "HTTP/1.1 431 Request Header Fields Too Large");
        assert!(said("HEAD / HTTP/1.1\r\n\r\n").ends_with("close\r\n\r\n"));
    }

    #[test]
    fn the_form_is_what_the_client_reads() {
        let open = said(
            "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n\r\n",
        );
        assert!(
            open.ends_with("page of OpenMetrics\n")
                && open.contains("openmetrics-text; version=1.0.0"),
            "{open}"
        );
        let plain = said("GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n");
        assert!(
            plain.ends_with("page of Prometheus\n") && plain.contains("version=0.0.4"),
            "{plain}"
        );
    }

    #[test]
    fn an_address_that_cannot_be_had_is_told_with_what_to_try() {
        let server = Server::open("127.0.0.1:0").expect("a free port");
        let taken = Server::open(&server.local().to_string()).expect_err("taken").to_string();
        assert!(taken.contains("is in use") && taken.contains("ss -ltnp"), "{taken}");
        assert!(Server::open("127.0.0.1").expect_err("no port").to_string().contains("HOST:PORT"));
        let other = Server::open("192.0.2.1:9464").expect_err("of nobody").to_string();
        assert!(other.contains("no address of this host"), "{other}");
    }

    #[test]
    fn slow_and_rude_clients_do_not_hinder_others() {
        let server = Server::open("127.0.0.1:0").expect("a free port");
        server.answer().expect("room for threads");
        let rude: Vec<TcpStream> = (1..THREADS)
            .map(|_| {
                let mut client = TcpStream::connect(server.local()).expect("accepted");
                client.write_all(b"GET /metr").expect("sent");
                client
            })
            .collect();
        let mut client = TcpStream::connect(server.local()).expect("accepted");
        client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        drop(rude);
    }
}
