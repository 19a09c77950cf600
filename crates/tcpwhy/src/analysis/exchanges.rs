//! Transfers of both directions, and which answers which.
//!
//! A request is a transfer of the client, its response the next transfer of the server that
//! starts before the client's next. Think time is measured at the server's stack: from the
//! arrival of the request's last byte to the first byte of the response; what the tap sees is
//! longer by the round trip between tap and server.

use crate::limits::transfers::Run;
use crate::limits::walker::Walker;
use crate::report::{Exchange, RoundRange, TimeIn, Transfer};

/// A transfer with the side that sent it.
#[derive(Clone, Copy, Debug)]
struct Placed<'a> {
    side: usize,
    run: &'a Run,
    time_in: &'a TimeIn,
    shift: i64,
}

/// All transfers by start, and the exchanges among them; `floors` are the constant round trips
/// between the tap and each side.
pub(crate) fn collect(
    walkers: &[Walker; 2],
    floors: [i64; 2],
    lifetime: i64,
) -> (Vec<Transfer>, Vec<Exchange>) {
    let mut placed: Vec<Placed<'_>> =
        walkers
            .iter()
            .enumerate()
            .flat_map(|(side, walker)| {
                walker.transfers.runs.iter().zip(&walker.transfers.times).map(
                    move |(run, time_in)| Placed { side, run, time_in, shift: walker.shift_in },
                )
            })
            .collect();
    placed.sort_by_key(|p| (p.run.start + p.shift, p.side));
    let transfers = placed
        .iter()
        .map(|p| Transfer {
            from: if p.side == 0 { "client" } else { "server" }.into(),
            start_ns: (p.run.start + p.shift).clamp(0, lifetime),
            end_ns: (p.run.end.max(p.run.start) + p.shift).clamp(0, lifetime),
            bytes: (p.run.to - p.run.from).max(0) as u64,
            time_in: p.time_in.clone(),
            rounds: Some(RoundRange { first: p.run.first_round, last: p.run.last_round }),
        })
        .collect();
    (transfers, pair(&placed, floors))
}

fn pair(placed: &[Placed<'_>], floors: [i64; 2]) -> Vec<Exchange> {
    let requests = placed.iter().filter(|p| p.side == 0).count();
    let mut exchanges = Vec::with_capacity(requests);
    for (at, request) in placed.iter().enumerate().filter(|(_, p)| p.side == 0) {
        let response = placed[at + 1..].iter().position(|p| p.side == 1).map(|i| at + 1 + i);
        let next_request = placed[at + 1..].iter().position(|p| p.side == 0).map(|i| at + 1 + i);
        let response = response.filter(|r| next_request.is_none_or(|n| *r < n));
        let answer = response.map(|r| &placed[r]);
        let think = answer.and_then(|a| a.run.after_peer);
        // In the client's frame a send precedes the tap by its floor; in the server's likewise.
        let first_byte = answer.map(|a| a.run.start + floors[1] - request.run.start);
        let last = placed[response.unwrap_or(at)..next_request.unwrap_or(placed.len())]
            .iter()
            .rev()
            .find(|p| p.side == 1);
        let total = last.map(|a| a.run.end + a.shift - (request.run.start + request.shift));
        exchanges.push(Exchange {
            request: at as u64,
            response: response.map(|r| r as u64),
            think_ns: think.map(|t| t + floors[1]),
            server_think_ns: think,
            first_byte_ns: first_byte,
            total_ns: total,
        });
    }
    exchanges
}
