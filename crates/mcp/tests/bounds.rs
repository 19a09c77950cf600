//! Clients that send nonsense, ask for too much, do not take their answers, or go.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{call, client, facts, pipe, refused, runtime, text};
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};
use tcpwhy_mcp::{
    Account, Answer, Answers, Changes, Checked, Explained, Found, Frames, MOST_FACTS, MOST_LINE,
    MOST_TEXT, Opened, Page, Refused, Said,
};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::{sleep, timeout};

/// Answers that take their time, are endless, or fail.
#[derive(Default)]
struct Odd(Arc<Seen>);

#[derive(Default)]
struct Seen {
    begun: AtomicUsize,
    stopped: AtomicBool,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

fn none<T>() -> Said<T> {
    Err(Refused("no such answer".to_owned()))
}

impl Answers for Odd {
    fn explain(&self, _: &Opened, _: Option<&str>, stop: &AtomicBool) -> Said<Explained> {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        while !stop.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.0.stopped.store(true, Ordering::SeqCst);
        none()
    }

    fn connection(&self, _: &Opened, _: Option<u64>, _: &AtomicBool) -> Said<Account> {
        panic!("a mistake made for a test")
    }

    fn finding(&self, _: &Opened, _: Option<u64>, _: &str, _: &AtomicBool) -> Said<Found> {
        none()
    }

    fn frames(&self, _: &Opened, _: Option<u64>, _: u64, _: usize, _: &AtomicBool) -> Said<Frames> {
        none()
    }

    fn whatif(&self, _: &Opened, _: Option<u64>, _: &[String], _: &AtomicBool) -> Said<Changes> {
        none()
    }

    fn check(&self, text: Option<&str>, _: u64) -> Said<Checked> {
        let line = "a host said this\u{1b}[2J\n";
        let host = |number| {
            let Value::Object(host) = json!({ "number": number, "text": line }) else { panic!() };
            host
        };
        let hosts = (0..text.map_or(1, str::len)).map(host).collect();
        Ok(Answer { text: line.repeat(1 << 20), facts: Checked { hosts }, remarks: Vec::new() })
    }

    fn doc(&self, word: &str) -> Said<Page> {
        let now = self.0.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_at_once.fetch_max(now, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(5));
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(Answer { text: word.to_owned(), facts: Page::default(), remarks: Vec::new() })
    }
}

fn folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("a"), "").expect("a file");
    folder
}

async fn until(holds: impl Fn() -> bool) {
    let waited = timeout(Duration::from_secs(20), async {
        while !holds() {
            sleep(Duration::from_millis(1)).await;
        }
    });
    waited.await.expect("it happens");
}

#[test]
fn a_cancelled_question_is_stopped_and_the_next_is_answered() {
    let folder = folder();
    runtime().block_on(async {
        let seen = Arc::new(Seen::default());
        let client = client(&[folder.path().to_owned()], Odd(Arc::clone(&seen))).await;
        let Value::Object(arguments) = json!({ "file": "a" }) else { panic!() };
        let call_of = CallToolRequestParams::new("explain").with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call_of));
        let options = PeerRequestOptions::no_options();
        let handle = client.send_cancellable_request(request, options).await.expect("sent");
        until(|| seen.begun.load(Ordering::SeqCst) == 1).await;
        handle.cancel(Some("no more".to_owned())).await.expect("cancelled");
        until(|| seen.stopped.load(Ordering::SeqCst)).await;
        let answer = call(&client, "doc", json!({ "word": "x" })).await;
        assert_eq!(text(&answer), "x\n");
    });
}

#[test]
fn a_client_that_goes_leaves_no_work_behind() {
    let folder = folder();
    runtime().block_on(async {
        let seen = Arc::new(Seen::default());
        let client = client(&[folder.path().to_owned()], Odd(Arc::clone(&seen))).await;
        let Value::Object(arguments) = json!({ "file": "a" }) else { panic!() };
        let call_of = CallToolRequestParams::new("explain").with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(call_of));
        let options = PeerRequestOptions::no_options();
        let handle = client.send_cancellable_request(request, options).await.expect("sent");
        until(|| seen.begun.load(Ordering::SeqCst) == 1).await;
        drop(handle);
        client.cancel().await.expect("gone");
        until(|| seen.stopped.load(Ordering::SeqCst)).await;
    });
}

#[test]
fn questions_work_one_by_one_and_too_many_are_refused() {
    let folder = folder();
    runtime().block_on(async {
        let seen = Arc::new(Seen::default());
        let client = client(&[folder.path().to_owned()], Odd(Arc::clone(&seen))).await;
        let word = |number: usize| call(&client, "doc", json!({ "word": number.to_string() }));
        let answers = futures(word, 40).await;
        let busy = answers.iter().filter(|answer| answer.is_error == Some(true));
        assert!(busy.clone().count() > 0 && busy.count() <= 24);
        for answer in answers.iter().filter(|answer| answer.is_error == Some(true)) {
            assert!(refused(answer).contains("16 questions wait already"), "{answer:?}");
        }
        assert_eq!(seen.most_at_once.load(Ordering::SeqCst), 1);
    });
}

/// All at once.
async fn futures<T, F: Future<Output = T>>(ask: impl Fn(usize) -> F, number: usize) -> Vec<T> {
    let mut waiting: Vec<_> = (0..number).map(|number| Box::pin(ask(number))).collect();
    let mut done = Vec::new();
    std::future::poll_fn(|context| {
        waiting.retain_mut(|each| match each.as_mut().poll(context) {
            std::task::Poll::Ready(answer) => {
                done.push(answer);
                false
            }
            std::task::Poll::Pending => true,
        });
        if waiting.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done
}

#[test]
fn an_endless_answer_is_cut_in_text_and_facts_and_says_so() {
    let folder = folder();
    runtime().block_on(async {
        let client = client(&[folder.path().to_owned()], Odd::default()).await;
        let answer = call(&client, "check", json!({ "text": "x".repeat(5000) })).await;
        let (said, facts) = (text(&answer), facts(&answer));
        assert!(said.len() <= MOST_TEXT && !said.contains('\u{1b}'), "{}", said.len());
        let last = said.lines().last().expect("lines");
        assert!(
            last.starts_with("[cut: ") && last.contains("Ask `check` with less text"),
            "{last}"
        );
        assert!(facts.to_string().len() <= MOST_FACTS);
        let hosts = facts["hosts"].as_array().expect("hosts").len() as u64;
        assert_eq!(facts["left_out"].as_u64(), Some(5000 - hosts));
        assert_eq!(facts["hosts"][0]["text"], "a host said this\\u{1b}[2J\\n");
    });
}

#[test]
fn a_panic_is_an_answer_and_the_server_goes_on() {
    let folder = folder();
    runtime().block_on(async {
        let client = client(&[folder.path().to_owned()], Odd::default()).await;
        let answer = call(&client, "connection", json!({ "file": "a" })).await;
        assert!(refused(&answer).contains("a mistake in tcpwhy"), "{answer:?}");
        assert_eq!(text(&call(&client, "doc", json!({ "word": "x" })).await), "x\n");
    });
}

const BEGIN: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"#,
    r#""clientInfo":{"name":"raw","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n"
);

fn doc(id: u64, word: &str) -> String {
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "doc", "arguments": { "word": word } } });
    format!("{call}\n")
}

#[test]
fn lines_that_are_no_messages_are_answered_and_passed_over() {
    let folder = folder();
    runtime().block_on(async {
        let (read, mut write) = tokio::io::split(pipe(&[folder.path().to_owned()], Odd::default()));
        let mut lines = BufReader::new(read).lines();
        let mut next = async || -> Value {
            let line = lines.next_line().await.expect("a line").expect("a line");
            serde_json::from_str(&line).expect("JSON")
        };
        // Before it begins and after.
        write.write_all(b"hello?\n").await.expect("taken");
        assert_eq!(next().await["error"]["code"], -32700);
        write.write_all(BEGIN.as_bytes()).await.expect("taken");
        assert_eq!(next().await["result"]["serverInfo"]["name"], "tcpwhy");
        for garbage in [&b"\xff\xfe{\n"[..], b"{\"jsonrpc\":\"2.0\",\"id\":7\n", b"]\n"] {
            write.write_all(garbage).await.expect("taken");
            let answer = next().await;
            assert_eq!(answer["error"]["code"], -32700, "{answer}");
            assert!(answer["error"]["message"].as_str().expect("why").contains("no JSON"));
        }
        let deep = format!("{}{}\n", "[".repeat(100_000), "]".repeat(100_000));
        write.write_all(deep.as_bytes()).await.expect("taken");
        assert_eq!(next().await["error"]["code"], -32700);
        write
            .write_all(b"\n\r\n{\"method\":\"notifications/odd\",\"params\":3}\n")
            .await
            .expect("taken");
        write
            .write_all(b"{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"tools/list\"}\n")
            .await
            .expect("taken");
        let answer = next().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32600), &json!(7)));
        write.write_all(doc(8, "still there").as_bytes()).await.expect("taken");
        assert_eq!(next().await["result"]["content"][0]["text"], "still there\n");
    });
}

#[test]
fn an_endless_line_takes_no_room_and_is_answered_when_it_ends() {
    let folder = folder();
    runtime().block_on(async {
        let (read, mut write) = tokio::io::split(pipe(&[folder.path().to_owned()], Odd::default()));
        let mut lines = BufReader::new(read).lines();
        write.write_all(BEGIN.as_bytes()).await.expect("taken");
        lines.next_line().await.expect("begun");
        let part = vec![b'x'; 1 << 20];
        for _ in 0..(MOST_LINE >> 20) * 8 {
            write.write_all(&part).await.expect("taken");
        }
        write.write_all(b"\n").await.expect("taken");
        let answer = lines.next_line().await.expect("a line").expect("a line");
        assert!(answer.contains("at most 4194304 bytes"), "{answer}");
        write.write_all(doc(2, "x").as_bytes()).await.expect("taken");
        assert!(lines.next_line().await.expect("a line").expect("a line").contains("\"id\":2"));
    });
}

#[test]
fn a_client_that_takes_no_answers_is_read_no_further_and_gets_all_of_them_later() {
    let folder = folder();
    runtime().block_on(async {
        let (mut read, mut write) =
            tokio::io::split(pipe(&[folder.path().to_owned()], Odd::default()));
        write.write_all(BEGIN.as_bytes()).await.expect("taken");
        let lists =
            |id: u64| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n");
        let mut sent = 0;
        // The pipe fills when the server reads no more.
        while let Ok(written) =
            timeout(Duration::from_millis(500), write.write_all(lists(sent + 10).as_bytes())).await
        {
            written.expect("taken");
            sent += 1;
            assert!(sent < 100_000, "it reads on and on");
        }
        // That one was sent in part.
        drop(write);
        let mut all = Vec::new();
        let _ = timeout(Duration::from_secs(20), async {
            let mut buffer = vec![0; 1 << 16];
            while String::from_utf8_lossy(&all).matches("\"id\":").count() < 60 {
                let got = read.read(&mut buffer).await.expect("read");
                all.extend_from_slice(&buffer[..got]);
            }
        })
        .await;
        assert!(String::from_utf8_lossy(&all).matches("explain").count() >= 60);
    });
}
