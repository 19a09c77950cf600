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
    run: Run,
    time_in: &'a TimeIn,
    shift: i64,
}

impl Placed<'_> {
    fn transfer(&self, lifetime: i64) -> Transfer {
        let Self { side, run, time_in, shift } = *self;
        Transfer {
            from: if side == 0 { "client" } else { "server" }.into(),
            start_ns: (run.start + shift).clamp(0, lifetime),
            end_ns: (run.end.max(run.start) + shift).clamp(0, lifetime),
            bytes: (run.to - run.from).max(0) as u64,
            // A copy is as long as it need be.
            time_in: time_in.clone(),
            rounds: Some(RoundRange { first: run.first_round, last: run.last_round }),
        }
    }
}

/// All transfers by start.
pub(crate) fn transfers(walkers: &[Walker; 2], lifetime: i64) -> Vec<Transfer> {
    placed(walkers).iter().map(|placed| placed.transfer(lifetime)).collect()
}

/// The exchanges among them; `floors` are the constant round trips between the tap and each side.
pub(crate) fn pairs(walkers: &[Walker; 2], floors: [i64; 2]) -> Vec<Exchange> {
    pair(&placed(walkers), floors)
}

fn placed(walkers: &[Walker; 2]) -> Vec<Placed<'_>> {
    let count = walkers.iter().map(|walker| walker.transfers.runs.len()).sum();
    let mut placed = Vec::with_capacity(count);
    for (side, walker) in walkers.iter().enumerate() {
        let (shift, transfers) = (walker.shift_in, &walker.transfers);
        let runs = transfers.runs.iter().zip(&transfers.times);
        placed.extend(runs.map(|(run, time_in)| Placed { side, run: *run, time_in, shift }));
    }
    placed.sort_by_key(|p| (p.run.start + p.shift, p.side));
    placed
}

fn pair(placed: &[Placed<'_>], floors: [i64; 2]) -> Vec<Exchange> {
    let requests = placed.iter().filter(|p| p.side == 0).count();
    let mut exchanges = Vec::with_capacity(requests);
    let mut at = 0;
    // A request and all up to the next, which are the server's; before the first may be more of those.
    for request_and_answers in placed.chunk_by(|_, next| next.side == 1) {
        let request_at = at as u64;
        at += request_and_answers.len();
        let [request @ Placed { side: 0, .. }, answers @ ..] = request_and_answers else {
            continue;
        };
        let answer = answers.first();
        let think = answer.and_then(|a| a.run.after_peer);
        // In the client's frame a send precedes the tap by its floor; in the server's likewise.
        let first_byte = answer.map(|a| a.run.start + floors[1] - request.run.start);
        let begun = request.run.start + request.shift;
        exchanges.push(Exchange {
            request: request_at,
            response: answer.map(|_| request_at + 1),
            think_ns: think.map(|t| t + floors[1]),
            server_think_ns: think,
            first_byte_ns: first_byte,
            total_ns: answers.last().map(|a| a.run.end + a.shift - begun),
        });
    }
    exchanges
}
