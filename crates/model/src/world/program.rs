//! An end's steps as they are carried out, one by one: laid out once, for all connections of a flow.

use super::Side;
use crate::scenario::plan::{Flow, Step};

/// What one end of every connection of a flow does.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) steps: Vec<Flat>,
    /// The last step that writes.
    pub(super) last_write: Option<usize>,
    /// Where the heads that the peer writes end in its stream.
    pub(super) heads: Vec<u64>,
    pub(super) cork: bool,
}

/// Steps without repetition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flat {
    Write { bytes: u64, chunk: u64, pause_ns: u64 },
    Read { bytes: u64, chunk: u64, pause_ns: u64 },
    ReadHead,
    Sleep(u64),
    Drain,
    EndWriting,
    Reset,
}

impl Program {
    pub(super) fn of(flow: &Flow, side: Side) -> Self {
        let (own, peers, socket) = match side {
            Side::Client => (&flow.client, &flow.server, &flow.client_socket),
            Side::Server => (&flow.server, &flow.client, &flow.server_socket),
        };
        let mut steps = Vec::new();
        flatten(own, &mut steps);
        let mut heads = Vec::new();
        head_ends(peers, &mut 0, &mut heads);
        let last_write = steps.iter().rposition(|step| matches!(step, Flat::Write { .. }));
        Self { steps, last_write, heads, cork: socket.cork }
    }
}

fn flatten(steps: &[Step], flat: &mut Vec<Flat>) {
    for step in steps {
        match step {
            Step::Write { bytes, chunk, pause_ns } => {
                flat.push(Flat::Write { bytes: *bytes, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::WriteHead(bytes) => {
                flat.push(Flat::Write { bytes: *bytes, chunk: 0, pause_ns: 0 });
            }
            Step::Read { bytes, chunk, pause_ns } => {
                flat.push(Flat::Read { bytes: *bytes, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::ReadToEnd { chunk, pause_ns } => {
                flat.push(Flat::Read { bytes: u64::MAX, chunk: *chunk, pause_ns: *pause_ns });
            }
            Step::ReadHead => flat.push(Flat::ReadHead),
            Step::Sleep(ns) => flat.push(Flat::Sleep(*ns)),
            Step::Drain => flat.push(Flat::Drain),
            Step::EndWriting => flat.push(Flat::EndWriting),
            Step::Reset => flat.push(Flat::Reset),
            // `World::new` refuses it.
            Step::KeepOpen => {}
            Step::Repeat { times, steps } => (0..*times).for_each(|_| flatten(steps, flat)),
        }
    }
}

fn head_ends(steps: &[Step], written: &mut u64, ends: &mut Vec<u64>) {
    for step in steps {
        match step {
            Step::Write { bytes, .. } => *written += bytes,
            Step::WriteHead(bytes) => {
                *written += bytes;
                ends.push(*written);
            }
            Step::Repeat { times, steps } => {
                (0..*times).for_each(|_| head_ends(steps, written, ends));
            }
            _ => {}
        }
    }
}
