//! A client of the SDK, and a server beside it in the same process.

#![allow(dead_code, reason = "each test file uses its own part of this one")]

use std::path::PathBuf;

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::Value;
use tcpwhy_mcp::{Answers, Folders, Lines, Server};
use tokio::io::{DuplexStream, duplex, split};
use tokio::runtime::{Builder, Runtime};

pub(crate) type Client = RunningService<RoleClient, ()>;

pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// A server of these folders, and what a client holds of the pipe to it.
pub(crate) fn pipe(folders: &[PathBuf], answers: impl Answers) -> DuplexStream {
    let folders = Folders::open(folders).expect("folders");
    let (ours, theirs) = duplex(1 << 16);
    tokio::spawn(async move {
        let (read, write) = split(theirs);
        let server = Server::new(folders, answers).serve(Lines::new(read, write)).await;
        if let Ok(running) = server {
            let _ = running.waiting().await;
        }
    });
    ours
}

/// A client that has begun.
pub(crate) async fn client(folders: &[PathBuf], answers: impl Answers) -> Client {
    ().serve(pipe(folders, answers)).await.expect("it begins")
}

/// Calls a tool.
pub(crate) async fn call(client: &Client, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let call = CallToolRequestParams::new(tool).with_arguments(arguments);
    client.call_tool(call).await.expect("an answer")
}

/// The text of an answer.
pub(crate) fn text(result: &CallToolResult) -> &str {
    let [only] = &result.content[..] else { panic!("one text: {result:?}") };
    &only.as_text().expect("text").text
}

/// The facts of an answer that is one.
pub(crate) fn facts(result: &CallToolResult) -> &Value {
    assert_ne!(result.is_error, Some(true), "{}", text(result));
    result.structured_content.as_ref().expect("facts")
}

/// Why there is no answer.
pub(crate) fn refused(result: &CallToolResult) -> &str {
    assert_eq!(result.is_error, Some(true), "{result:?}");
    text(result)
}
