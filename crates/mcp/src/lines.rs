//! Messages, a line of JSON each, over a pair of streams.
//!
//! The SDK's own transport passes over what it cannot read without a word. Here each such line is answered: that it is no
//! JSON, no message, or too long. And what a client does not take does not pile up: with too many answers under way
//! nothing more is read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::{Mutex, Notify};

/// Bytes of a message. Ours: what `ss -tinm` prints of 10,000 sockets takes 4 MB.
pub const MOST_LINE: usize = 4 << 20;

/// Answers that the client has not taken yet. Ours: with the longest, 2 MB.
const MOST_UNSENT: usize = 64;

/// A byte order mark, which some programs put first (RFC 8259 §8.1).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A pair of streams with messages on them.
pub struct Lines<R, W> {
    read: BufReader<R>,
    /// What is there of the line that is being read.
    line: Vec<u8>,
    /// The line is too long: its rest is passed over.
    is_too_long: bool,
    out: Arc<Out<W>>,
}

struct Out<W> {
    /// `None` once it is closed.
    write: Mutex<Option<W>>,
    unsent: AtomicUsize,
    is_broken: AtomicBool,
    /// One of the unsent was sent.
    taken: Notify,
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    /// Messages that come on `read` and go on `write`.
    pub fn new(read: R, write: W) -> Self {
        let out = Out {
            write: Mutex::new(Some(write)),
            unsent: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
            taken: Notify::new(),
        };
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_too_long: false,
            out: Arc::new(out),
        }
    }

    /// Reads up to the end of a line, which is in `line` then. It may be given up at any time and begun again.
    async fn next(&mut self) -> io::Result<Next> {
        loop {
            let here = self.read.fill_buf().await?;
            if here.is_empty() {
                // The last line may lack its end.
                let ended = std::mem::take(&mut self.is_too_long) || self.line.is_empty();
                return Ok(if ended { Next::End } else { Next::Line });
            }
            let end = here.iter().position(|byte| *byte == b'\n');
            let part = &here[..end.unwrap_or(here.len())];
            let fits = self.line.len() + part.len() <= MOST_LINE;
            if self.is_too_long || !fits {
                self.is_too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            let taken = end.map_or(here.len(), |end| end + 1);
            self.read.consume(taken);
            if end.is_some() {
                let is_too_long = std::mem::take(&mut self.is_too_long);
                return Ok(if is_too_long { Next::TooLong } else { Next::Line });
            }
        }
    }
}

enum Next {
    Line,
    TooLong,
    End,
}

impl<W> Out<W> {
    /// Waits until few answers are under way.
    async fn has_room(&self) {
        while self.unsent.load(Ordering::Relaxed) >= MOST_UNSENT {
            self.taken.notified().await;
        }
    }
}

/// One answer under way.
struct Unsent<W>(Arc<Out<W>>);

impl<W> Drop for Unsent<W> {
    fn drop(&mut self) {
        self.0.unsent.fetch_sub(1, Ordering::Relaxed);
        self.0.taken.notify_one();
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.out.unsent.fetch_add(1, Ordering::Relaxed);
        let unsent = Unsent(Arc::clone(&self.out));
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = unsent.0.write.lock().await;
            let closed = || io::Error::from(io::ErrorKind::NotConnected);
            let sent = async {
                let write = write.as_mut().ok_or_else(closed)?;
                write.write_all(&line).await?;
                write.flush().await
            };
            let sent = sent.await;
            if sent.is_err() {
                unsent.0.is_broken.store(true, Ordering::Relaxed);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            self.out.has_room().await;
            // Nobody hears the answer to what comes now.
            if self.out.is_broken.load(Ordering::Relaxed) {
                return None;
            }
            let wrong = match self.next().await {
                Ok(Next::Line) => {
                    let read = read(&self.line);
                    self.line.clear();
                    match read {
                        Ok(message) => return Some(message),
                        Err(Some(wrong)) => wrong,
                        Err(None) => continue,
                    }
                }
                Ok(Next::TooLong) => {
                    let why = format!(
                        "a message has at most {MOST_LINE} bytes: this one was passed over"
                    );
                    (ErrorData::invalid_request(why, None), None)
                }
                Ok(Next::End) | Err(_) => return None,
            };
            let (error, id) = wrong;
            // What is wrong with sending it is heard of at the next line.
            drop(tokio::spawn(self.send(TxJsonRpcMessage::<RoleServer>::error(error, id))));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Whoever writes to a client that takes nothing is not waited for.
        if let Ok(mut write) = self.out.write.try_lock() {
            *write = None;
        }
        Ok(())
    }
}

/// What to answer to a line that is no message.
type Wrong = (ErrorData, Option<RequestId>);

/// The message of a line; what to answer if it is none, and `None` where nothing is to be said.
fn read(line: &[u8]) -> Result<RxJsonRpcMessage<RoleServer>, Option<Wrong>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(MARK).unwrap_or(line);
    if line.trim_ascii().is_empty() {
        return Err(None);
    }
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        let why = format!("this line is no JSON: {error}");
        return Err(Some((ErrorData::parse_error(why, None), None)));
    };
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    // A notification wants no answer, whatever it is.
    if id.is_none() && value.get("method").is_some() {
        return Err(None);
    }
    let why = "this is no message of the Model Context Protocol".to_owned();
    Err(Some((ErrorData::invalid_request(why, None), id)))
}
