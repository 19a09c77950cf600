//! Time in which somebody waited for a connection.

use super::{Connection, State};

impl Connection {
    /// Opening it, its transfers, and its requests until their answers. Nobody waits between requests, or
    /// during the closing.
    pub fn active_ns(&self) -> i64 {
        let mut spans = self.at_work();
        for exchange in &self.exchanges {
            let request = usize::try_from(exchange.request).ok();
            if let Some(from) = request.and_then(|at| self.transfers.get(at))
                && let Some(total) = exchange.total_ns
            {
                spans.push((from.start_ns, from.start_ns.saturating_add(total)));
            }
        }
        union(spans).min(self.duration_ns)
    }

    /// Time in which TCP had something to do: the same without the silence of applications.
    pub(crate) fn working_ns(&self) -> i64 {
        union(self.at_work())
    }

    /// The opening, the transfers, shut windows, and what was waited for in vain at the end.
    fn at_work(&self) -> Vec<(i64, i64)> {
        let waits = self.directions.iter().flatten().flat_map(|direction| &direction.limits);
        // Before a shut window data waits, whether it was ever sent or not.
        let waits = waits.filter(|each| {
            matches!(each.state, State::Handshake | State::SynRetry | State::ZeroWindow)
        });
        let transfers = self.transfers.iter().map(|each| (each.start_ns, each.end_ns));
        let vain = self.ending.iter().map(|ending| (ending.since_ns, ending.until_ns));
        let vain = vain.filter(|(from, to)| from < to);
        transfers.chain(waits.map(|each| (each.start_ns, each.end_ns))).chain(vain).collect()
    }
}

/// How long spans last that may overlap.
#[expect(
    clippy::stable_sort_primitive,
    reason = "they are few runs in order, which it only merges"
)]
fn union(mut spans: Vec<(i64, i64)>) -> i64 {
    spans.sort();
    let (mut sum, mut upto) = (0_i64, i64::MIN);
    for (from, to) in spans {
        sum = sum.saturating_add(to.saturating_sub(from.max(upto)).max(0));
        upto = upto.max(to);
    }
    sum
}
