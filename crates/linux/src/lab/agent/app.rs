//! One end of one flow: accepts or opens its connections and plays their steps.
//!
//! A client's connections come one after the other. A server takes each on a thread of its own,
//! but for the last, because a client may open the next one before this side has closed the last.
//! The first thing that goes wrong ends the whole application, with what was logged until then.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use socket2::Socket;
use tcpwhy_model::scenario::plan::{Accept, Flow, Plan, Step};

use super::flood;
use super::log::{Entry, Log, Side};
use super::socket;
use super::steps::{Conversation, End, Failure, check};
use crate::record::tcp_info;
use crate::sys::{Clock, Stop, fine_timers};

/// What one application is to do.
#[derive(Clone, Copy, Debug)]
pub struct Role<'a> {
    /// The run.
    pub plan: &'a Plan,
    /// Which of its flows.
    pub flow: usize,
    /// Which end.
    pub side: Side,
    /// The server's address.
    pub address: IpAddr,
    /// When the first application starts, on `CLOCK_REALTIME`; `None` is now.
    pub start: Option<u64>,
    /// Where to log.
    pub log: &'a Path,
}

/// Why an application ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The plan has no such flow.
    #[error("the plan has {flows} flows; there is no flow {flow} (they are counted from 0)")]
    NoSuchFlow {
        /// Asked for.
        flow: usize,
        /// What there is.
        flows: usize,
    },
    /// A step that nobody can carry out.
    #[error("flow {flow}, {side}: {why}")]
    Plan {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// What is wrong with it.
        why: String,
    },
    /// The log cannot be written.
    #[error("flow {flow}, {side}: cannot write {log}: {source}")]
    Log {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// The file.
        log: String,
        /// Why.
        source: io::Error,
    },
    /// A call failed outside the steps.
    #[error("flow {flow}, {side}, connection {connection}: cannot {call}: {source}")]
    Call {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// Which, from 1; 0 before the first.
        connection: u32,
        /// What was tried.
        call: String,
        /// Why not.
        source: io::Error,
    },
    /// A step failed.
    #[error("flow {flow}, {side}, connection {connection}, step {step}: {source}")]
    Step {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// Which, from 1.
        connection: u32,
        /// Place and name.
        step: String,
        /// Why.
        source: io::Error,
    },
    /// The plan's time is over.
    #[error(
        "flow {flow}, {side}: not done after the plan's limit of {limit_ns} ns; {open} of {connections} connections were not"
    )]
    Late {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// The limit.
        limit_ns: u64,
        /// Connections not done.
        open: u32,
        /// Of so many.
        connections: u32,
    },
    /// Somebody asked it to end.
    #[error(
        "flow {flow}, {side}: told to end by a signal; {open} of {connections} connections were not done"
    )]
    Stopped {
        /// Where.
        flow: usize,
        /// Where.
        side: Side,
        /// Connections not done.
        open: u32,
        /// Of so many.
        connections: u32,
    },
}

impl AppError {
    /// Whether only one connection failed.
    const fn is_of_a_connection(&self) -> bool {
        matches!(self, Self::Call { connection: 1.., .. } | Self::Step { .. })
    }

    /// Which one; 0 if it is none's.
    const fn connection(&self) -> u32 {
        match self {
            Self::Call { connection, .. } | Self::Step { connection, .. } => *connection,
            _ => 0,
        }
    }
}

/// Plays a role to its end; `ready` is called when the server listens or the client is about to
/// wait for its start.
///
/// `stop` must listen already, so that no thread started here is interrupted by a signal.
pub(super) fn run(role: Role<'_>, stop: Stop, ready: impl FnOnce()) -> Result<(), AppError> {
    let (flow, side) = (role.flow, role.side);
    let flows = role.plan.flows.len();
    let played = role.plan.flows.get(flow).ok_or(AppError::NoSuchFlow { flow, flows })?;
    let (steps, others) = match side {
        Side::Server => (&played.server, &played.client),
        Side::Client => (&played.client, &played.server),
    };
    check(steps, "").map_err(|why| AppError::Plan { flow, side, why })?;
    if side == Side::Client && played.client_socket.fast_open && !begins_with_write(steps) {
        let why = "with Fast Open a client has to write first, for its data opens the connection";
        return Err(AppError::Plan { flow, side, why: why.to_owned() });
    }
    let log_error =
        |source| AppError::Log { flow, side, log: role.log.display().to_string(), source };
    let log = Log::open(role.log, side, flow).map_err(log_error)?;
    // Where the kernel refuses, timers fire a little later.
    let _ = fine_timers();

    let stage = Arc::new(Stage {
        flow,
        side,
        at: SocketAddr::new(role.address, played.port),
        played: played.clone(),
        reset_expected: matches!(others.last(), Some(Step::Reset)),
        log,
        kept: Mutex::default(),
    });
    let (sender, events) = mpsc::channel();
    let told = sender.clone();
    thread::spawn(move || {
        stop.wait();
        let _ = told.send(Event::Signal);
    });
    let start = role.start.unwrap_or_else(|| Clock::Real.now());
    // A listener that nobody accepts from stays open all the same.
    let mut listens = None;
    match side {
        Side::Server => {
            let listener = Arc::new(stage.listen()?);
            let (stage, own) = (Arc::clone(&stage), Arc::clone(&listener));
            listens = Some(listener);
            thread::spawn(move || serve(&stage, &own, &sender));
        }
        Side::Client => {
            let stage = Arc::clone(&stage);
            let start = start.saturating_add(played.start_ns);
            thread::spawn(move || visit(&stage, start, &sender));
        }
    }
    ready();
    let ended = stage.watch(&events, role.plan.limit_ns);
    drop(listens);
    stage.log.flush().map_err(log_error)?;
    ended
}

/// What the threads of an application share.
struct Stage {
    flow: usize,
    side: Side,
    at: SocketAddr,
    played: Flow,
    reset_expected: bool,
    log: Log,
    /// Connections that stay open until this application ends.
    kept: Mutex<Vec<Socket>>,
}

enum Event {
    Ended(Result<(), AppError>),
    Signal,
}

impl Stage {
    /// Waits until all connections are done or something goes wrong.
    fn watch(&self, events: &mpsc::Receiver<Event>, limit_ns: u64) -> Result<(), AppError> {
        let (flow, side, connections) = (self.flow, self.side, self.played.connections);
        let end = (limit_ns > 0).then(|| Clock::Monotonic.now().saturating_add(limit_ns));
        let mut open = connections;
        while open > 0 || self.stays() {
            let event = match end {
                None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(end) => {
                    let left = end.saturating_sub(Clock::Monotonic.now());
                    events.recv_timeout(Duration::from_nanos(left))
                }
            };
            match event {
                Ok(Event::Ended(Ok(()))) => open -= 1,
                Ok(Event::Ended(Err(error)))
                    if self.played.may_fail && error.is_of_a_connection() =>
                {
                    self.failed(&error)?;
                    open -= 1;
                }
                Ok(Event::Ended(Err(error))) => return Err(error),
                Ok(Event::Signal) if self.stays() && (open == 0 || self.side == Side::Server) => {
                    return Ok(());
                }
                Ok(Event::Signal) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(AppError::Stopped { flow, side, open, connections });
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(AppError::Late { flow, side, limit_ns, open, connections });
                }
            }
        }
        Ok(())
    }

    /// Whether it goes on until it is told to end.
    fn stays(&self) -> bool {
        match self.side {
            Side::Server => self.played.server_stays(),
            Side::Client => self.played.client_stays(),
        }
    }

    /// Notes a connection that failed.
    fn failed(&self, error: &AppError) -> Result<(), AppError> {
        let (connection, now) = (error.connection(), Clock::Real.now());
        let failed = Some(error.to_string());
        let entry =
            Entry { connection, step: "failed", from: now, to: now, failed, ..Entry::default() };
        self.log
            .add(&entry)
            .map_err(|source| self.call_error(connection, "write the log".to_owned(), source))
    }

    fn listen(&self) -> Result<Socket, AppError> {
        let (from, options) = (Clock::Real.now(), &self.played.server_socket);
        let listener = socket::listener(self.at, options)
            .map_err(|source| self.call_error(0, format!("listen on {}", self.at), source))?;
        self.opened("listen", 0, from, &listener)?;
        Ok(listener)
    }

    fn accept(&self, listener: &Socket, connection: u32) -> Result<Socket, AppError> {
        let from = Clock::Real.now();
        let socket = socket::accepted(listener, &self.played.server_socket)
            .map_err(|source| self.call_error(connection, "accept".to_owned(), source))?;
        self.opened("accept", connection, from, &socket)?;
        Ok(socket)
    }

    fn connect(&self, connection: u32) -> Result<Socket, AppError> {
        let from = Clock::Real.now();
        let socket = socket::connected(self.at, &self.played.client_socket).map_err(|source| {
            self.call_error(connection, format!("connect to {}", self.at), source)
        })?;
        self.opened("connect", connection, from, &socket)?;
        Ok(socket)
    }

    fn visit_once(&self, connection: u32) -> Result<(), AppError> {
        self.connect(connection).and_then(|socket| self.play(socket, connection))
    }

    fn opened(
        &self,
        step: &'static str,
        connection: u32,
        from: u64,
        socket: &Socket,
    ) -> Result<(), AppError> {
        let to = Clock::Real.now();
        let socket = Some(socket::facts(socket, self.options()));
        self.log
            .add(&Entry { connection, step, from, to, socket, ..Entry::default() })
            .map_err(|source| self.call_error(connection, "write the log".to_owned(), source))
    }

    /// Plays this side's steps on a connection and closes it.
    fn play(&self, socket: Socket, connection: u32) -> Result<(), AppError> {
        let (steps, head) = match self.side {
            Side::Server => (&self.played.server, RESPONSE),
            Side::Client => (&self.played.client, REQUEST),
        };
        let (flow, side) = (self.flow, self.side);
        let mut conversation =
            Conversation::new(&socket, connection, &self.log, head, self.reset_expected, steps);
        let end = conversation.play(steps, "").map_err(|Failure { step, source }| {
            AppError::Step { flow, side, connection, step, source }
        })?;
        if self.options().cork && end == End::Done {
            socket::uncork(&socket)
                .map_err(|source| self.call_error(connection, "uncork".to_owned(), source))?;
        }
        if end == End::Kept {
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(socket);
            return Ok(());
        }
        let asked = Clock::Real.now();
        let tcp_info = tcp_info::of_socket(socket.as_fd()).ok();
        let from = Clock::Real.now();
        drop(socket);
        let to = Clock::Real.now();
        let info = Entry { step: "tcp_info", from: asked, to: from, ..Entry::default() };
        let close = Entry { connection, step: "close", from, to, ..Entry::default() };
        self.log
            .add(&Entry { connection, tcp_info, ..info })
            .and_then(|()| self.log.add(&close))
            .map_err(|source| self.call_error(connection, "write the log".to_owned(), source))
    }

    fn options(&self) -> &tcpwhy_model::scenario::plan::Socket {
        match self.side {
            Side::Server => &self.played.server_socket,
            Side::Client => &self.played.client_socket,
        }
    }

    fn call_error(&self, connection: u32, call: String, source: io::Error) -> AppError {
        AppError::Call { flow: self.flow, side: self.side, connection, call, source }
    }
}

/// Accepts all connections; the last one is played on this thread.
fn serve(stage: &Arc<Stage>, listener: &Arc<Socket>, events: &Sender<Event>) {
    let connections = stage.played.connections;
    match stage.played.accept {
        Accept::AtOnce => {}
        Accept::After(ns) => Clock::Monotonic.sleep_until(Clock::Monotonic.now() + ns),
        // Whoever watches holds the listener.
        Accept::Never => return,
    }
    for connection in 1..=connections {
        let socket = match stage.accept(listener, connection) {
            Ok(socket) => socket,
            Err(error) => {
                let _ = events.send(Event::Ended(Err(error)));
                return;
            }
        };
        let (stage, events) = (Arc::clone(stage), events.clone());
        let play = move || {
            let _ = events.send(Event::Ended(stage.play(socket, connection)));
        };
        if connection == connections {
            play();
        } else {
            thread::spawn(play);
        }
    }
}

/// Opens all connections, one after the other or at once.
fn visit(stage: &Arc<Stage>, start: u64, events: &Sender<Event>) {
    Clock::Real.sleep_until(start);
    if let Err(source) = flood::send(stage.at, stage.played.flood) {
        let error = stage.call_error(0, "send SYNs of other hosts".to_owned(), source);
        let _ = events.send(Event::Ended(Err(error)));
        return;
    }
    let Flow { connections, gap_ns, together, may_fail, .. } = stage.played;
    for connection in 1..=connections {
        if together {
            let (stage, events) = (Arc::clone(stage), events.clone());
            thread::spawn(move || {
                let ended = stage.visit_once(connection);
                let _ = events.send(Event::Ended(ended));
            });
        } else {
            let ended = stage.visit_once(connection);
            let failed = ended.is_err() && !may_fail;
            if events.send(Event::Ended(ended)).is_err() || failed {
                return;
            }
        }
        if connection < connections && gap_ns > 0 {
            Clock::Monotonic.sleep_until(Clock::Monotonic.now() + gap_ns);
        }
    }
}

fn begins_with_write(steps: &[Step]) -> bool {
    match steps.first() {
        Some(Step::Write { .. } | Step::WriteHead(_)) => true,
        Some(Step::Repeat { steps, .. }) => begins_with_write(steps),
        _ => false,
    }
}

/// First lines of the heads, so that a capture shows what it is.
const REQUEST: &str = "GET /file HTTP/1.1\r\nHost: server\r\nUser-Agent: tcpwhy-lab\r\nX-Filler: ";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nServer: tcpwhy-lab\r\nX-Filler: ";
