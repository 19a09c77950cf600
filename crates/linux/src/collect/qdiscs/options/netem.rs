//! What netem is set to (`TCA_NETEM_*`).

use super::{Options, TICK_NS, bits, percent, time_ns};
use crate::netlink::{attribute, number};

impl Options<'_> {
    /// `tc_netem_qopt`, its attributes behind it.
    pub(super) fn netem(mut self) {
        const HEAD: usize = 24;
        let Some(head) = self.value.get(..HEAD) else { return };
        self.value = &self.value[HEAD..];
        let at = |at| number(head, at, 4).unwrap_or(0);
        self.set("limit", at(4));
        let delay =
            [self.u64(10).unwrap_or(at(0) * TICK_NS), self.u64(11).unwrap_or(at(20) * TICK_NS)];
        match delay {
            [0, 0] => {}
            [delay, 0] => self.set("delay", time_ns(delay)),
            [delay, jitter] => self.set("delay", format!("{} {}", time_ns(delay), time_ns(jitter))),
        }
        let mut chances = vec![("loss", at(8)), ("duplicate", at(16))];
        for (name, attribute_of) in [("reorder", 3), ("corrupt", 4)] {
            chances.extend(self.u32(attribute_of).map(|chance| (name, chance)));
        }
        for (name, chance) in chances.into_iter().filter(|&(_, chance)| chance != 0) {
            self.set(name, percent(chance));
        }
        self.qdisc.partly_read = self.netem_has_more();
        let rate = self.u64(8).or_else(|| self.u32(6)).filter(|&rate| rate != 0);
        if let Some(rate) = rate {
            self.set("rate", bits(rate.saturating_mul(8)));
            self.qdisc.rate = Some(rate.saturating_mul(8));
        }
        if let Some(gap) = Some(at(12)).filter(|&gap| gap != 0) {
            self.set("gap", gap);
        }
    }

    /// Correlations, a model of losses, what a rate adds to packets, ECN, slots.
    fn netem_has_more(&self) -> bool {
        let is_set = |attribute_of, from: usize| {
            let value = attribute(self.value, attribute_of).and_then(|value| value.get(from..));
            value.is_some_and(|value| value.iter().any(|byte| *byte != 0))
        };
        is_set(1, 0)
            || is_set(3, 4)
            || is_set(4, 4)
            || is_set(6, 4)
            || [5, 7, 12, 13].into_iter().any(|each| attribute(self.value, each).is_some())
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy::host::snapshot::Qdisc;

    use super::super::read;

    /// `tc_netem_qopt` with a limit of 1000 packets, and these attributes.
    fn netem(attributes: &[(u16, &[u8])]) -> Qdisc {
        let mut value = vec![0; 24];
        value[4..8].copy_from_slice(&1000_u32.to_ne_bytes());
        for (of, content) in attributes {
            value.extend((content.len() as u16 + 4).to_ne_bytes());
            value.extend(of.to_ne_bytes());
            value.extend_from_slice(content);
        }
        let mut qdisc = Qdisc { kind: "netem".to_owned(), ..Qdisc::default() };
        read(&mut qdisc, &value);
        qdisc
    }

    #[test]
    fn what_options_do_not_say_is_told() {
        let rate = |overhead: u32| [125_000, overhead, 0, 0].map(u32::to_ne_bytes).concat();
        let plain = netem(&[(1, &[0; 12]), (3, &[0; 8]), (4, &[0; 8]), (6, &rate(0))]);
        assert_eq!((&*plain.options["rate"], plain.partly_read), ("1Mbit", false));
        let correlated = [0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0];
        for more in
            [(1, &correlated[..]), (6, &rate(14)), (5, &[]), (7, &[1, 0, 0, 0]), (12, &[0; 40])]
        {
            assert!(netem(&[more]).partly_read, "{more:?}");
        }
    }
}
