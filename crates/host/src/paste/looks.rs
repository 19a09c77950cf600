//! What was collected, once all is read: readings are put into looks.

use std::collections::BTreeMap;

use super::collected::{Collected, Counted, Form, Grouped, Readings};
use super::{counters, programs, sockets};
use crate::snapshot::{FORMAT, Link, LinkCounters, Look, Occupied, Settings, Snapshot, Source};

impl Collected {
    /// Another text begins: commands, dates and traces of the one before do not go on in it.
    pub(super) fn begin_text(&mut self, star_is_v4: bool) {
        self.star_is_v4 = star_is_v4;
        (self.shows_some_lines, self.sets, self.now) = (false, false, None);
        let trace = core::mem::take(&mut self.trace);
        if !trace.is_empty() {
            self.traces.extend(programs::traced(&trace));
        }
    }

    pub(super) fn into_snapshot(mut self) -> Snapshot {
        sockets::complete(&mut self);
        let mut traces = core::mem::take(&mut self.traces);
        traces.extend(programs::traced(&self.trace));
        for each in self.interrupts.iter_mut().flatten() {
            each.affinity = self.affinity.get(&each.irq).cloned();
        }
        for readings in self.link_counts.values_mut() {
            readings.merge(|before, next| {
                // Another tool tells other counters: ifconfig beside ip.
                if before.keys().all(|name| next.contains_key(name)) {
                    return Some(next);
                }
                for (name, value) in next {
                    before.entry(name).or_insert(value);
                }
                None
            });
        }
        self.drop_copies();
        counters::complete(&mut self.counts);
        let settings = self.settings();
        self.range = settings.as_ref().and_then(port_range);
        let count = self.most_readings().max(1);
        let mut looks: Vec<Look> = (0..count).map(|look| self.look(look, count)).collect();
        if let Some(last) = looks.last_mut() {
            last.uptime_ns = self.uptime_ns;
            last.available_bytes = self.available_bytes;
            last.processes = Some(self.processes).filter(|all| !all.is_empty());
        }
        Snapshot {
            format: FORMAT.to_owned(),
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            pasted: true,
            kernel: self.kernel,
            named: self.names.into_named(),
            traces,
            speed_tests: self.speed_tests,
            memory_bytes: self.memory_bytes,
            agents: Some(self.agents.into_iter().collect()).filter(|all: &Vec<_>| !all.is_empty()),
            settings,
            set_in: Some(self.set_in).filter(|all| !all.is_empty()),
            routes: self.routes,
            tcp_metrics: self.tcp_metrics,
            unseen: self.unseen,
            said: self.said,
            looks,
            ..Snapshot::default()
        }
    }

    /// Where a reading holds what moves by itself, a second one that is the same is a copy.
    fn drop_copies(&mut self) {
        self.sockets.drop_copies();
        self.softnet.drop_copies();
        self.interrupts.drop_copies();
        self.counts.iter_mut().for_each(Readings::drop_copies);
        self.link_counts
            .values_mut()
            .chain(self.driver_counts.values_mut())
            .for_each(Readings::drop_copies);
        self.qdiscs.drop_copies();
        self.listeners.drop_copies();
        self.sockstat.drop_copies();
    }

    /// Those that were told with one value.
    fn settings(&mut self) -> Option<Settings> {
        let told = core::mem::take(&mut self.settings);
        let is_any = !told.is_empty();
        let mut values = BTreeMap::new();
        for (key, told) in told {
            match told.doubt() {
                Some(why) => self.could_not(Source::Settings.name(), Some(&key), &why),
                None => drop(values.insert(key, told.value)),
            }
        }
        is_any.then_some(Settings { values, ..Settings::default() })
    }

    fn most_readings(&self) -> usize {
        let counts = self.counts.iter().map(Readings::len);
        let links = self.link_counts.values().chain(self.driver_counts.values()).map(Readings::len);
        let others = [
            self.sockstat.len(),
            self.summary.len(),
            self.sockets.len(),
            self.listeners.len(),
            self.time_wait.len(),
            self.qdiscs.len(),
            self.softnet.len(),
            self.interrupts.len(),
            self.bonds.len(),
            self.states.len(),
        ];
        counts.chain(links).chain(others).max().unwrap_or(0)
    }

    fn look(&self, look: usize, looks: usize) -> Look {
        let mut at = Vec::new();
        let (mut counters, mut counters_cut) = (Grouped::new(), true);
        let mut counters_of_nstat = false;
        for (form, counts) in Form::ALL.into_iter().zip(&self.counts) {
            if let Some(reading) = counts.at(look, looks) {
                at.push(reading.at);
                counters_cut &= reading.what.is_cut();
                // The last of the forms wins.
                counters_of_nstat = form == Form::Nstat;
                for (group, names) in &reading.what.by_group {
                    let into = counters.entry(group.clone()).or_default();
                    into.extend(names.iter().map(|(name, value)| (name.clone(), *value)));
                }
            }
        }
        let (sockets, listeners) = (self.sockets.at(look, looks), self.listeners.at(look, looks));
        let (qdiscs, softnet) = (self.qdiscs.at(look, looks), self.softnet.at(look, looks));
        at.extend(sockets.map(|reading| reading.at));
        at.extend(listeners.map(|reading| reading.at));
        at.extend(qdiscs.map(|reading| reading.at));
        at.extend(softnet.map(|reading| reading.at));
        let links = self.links_at(look, looks, &mut at);
        Look {
            t_ns: at.into_iter().flatten().next(),
            counters_cut: counters_cut && !counters.is_empty(),
            counters_of_nstat,
            counters: Some(counters).filter(|all| !all.is_empty()),
            sockstat: self.sockstat_at(look, looks),
            sockets: sockets.map(|reading| reading.what.clone()),
            time_wait: self.time_wait_at(look, looks),
            listeners: listeners.map(|reading| reading.what.clone()),
            links: Some(links).filter(|all| !all.is_empty()),
            qdiscs: qdiscs.map(|reading| reading.what.clone()),
            softnet: softnet.map(|reading| reading.what.clone()),
            interrupts: self.interrupts.at(look, looks).map(|reading| reading.what.clone()),
            bonds: self.bonds.at(look, looks).map(|reading| reading.what.clone()),
            states: self.states.at(look, looks).map(|reading| reading.what.clone()),
            ..Look::default()
        }
    }

    /// `/proc/net/sockstat`, and what `ss -s` adds to it.
    fn sockstat_at(&self, look: usize, looks: usize) -> Option<Grouped<u64>> {
        let mut all = self.sockstat.at(look, looks).map(|reading| reading.what.clone());
        if let Some(summary) = self.summary.at(look, looks) {
            let tcp = all.get_or_insert_default().entry("TCP".to_owned()).or_default();
            for (name, value) in &summary.what {
                tcp.entry(name.clone()).or_insert(*value);
            }
        }
        all
    }

    /// Connections in `TIME_WAIT` by what would have to differ for a new one; `None` where no listener was
    /// seen, for only they tell which end connected.
    fn time_wait_at(&self, look: usize, looks: usize) -> Option<Vec<Occupied>> {
        let ends = self.time_wait.at(look, looks).filter(|_| !self.listening.is_empty())?;
        let mut all: BTreeMap<_, u32> = BTreeMap::new();
        for (local, remote) in &ends.what {
            let is_server = self.listening.contains(&local.port());
            let key = Occupied::by(*local, *remote, is_server, self.range);
            *all.entry(key).or_default() += 1;
        }
        let occupied = all.into_iter().map(|((local, local_port, remote), count)| Occupied {
            local,
            local_port,
            remote,
            count,
        });
        Some(occupied.collect())
    }

    fn links_at(&self, look: usize, looks: usize, at: &mut Vec<Option<u64>>) -> Vec<Link> {
        let is_last = look + 1 == looks;
        let mut links = Vec::new();
        for (name, facts) in &self.links {
            let counted = self.link_counts.get(name).and_then(|all| all.at(look, looks));
            let driver = self.driver_counts.get(name).and_then(|all| all.at(look, looks));
            if counted.is_none() && driver.is_none() && !is_last {
                continue;
            }
            at.extend(counted.map(|reading| reading.at));
            at.extend(driver.map(|reading| reading.at));
            let counters = counted.and_then(|reading| all_of(&reading.what));
            let some = counted.filter(|_| counters.is_none()).map(|reading| reading.what.clone());
            links.push(Link {
                counters,
                some_counters: some,
                carrier_changes: counted
                    .and_then(|reading| reading.what.get("carrier_changes").copied()),
                driver_counters: driver.map(|reading| reading.what.clone()),
                ..facts.clone()
            });
        }
        links
    }
}

fn port_range(settings: &Settings) -> Option<[u16; 2]> {
    let text = settings.values.get("net.ipv4.ip_local_port_range")?;
    let (low, high) = text.split_once(' ')?;
    Some([low.parse().ok()?, high.parse().ok()?])
}

/// All counters of an interface, if none is missing that every kernel has.
fn all_of(counted: &Counted) -> Option<LinkCounters> {
    let of = |name: &str| counted.get(name).copied();
    Some(LinkCounters {
        rx_packets: of("rx_packets")?,
        tx_packets: of("tx_packets")?,
        rx_bytes: of("rx_bytes")?,
        tx_bytes: of("tx_bytes")?,
        rx_errors: of("rx_errors")?,
        tx_errors: of("tx_errors")?,
        rx_dropped: of("rx_dropped")?,
        tx_dropped: of("tx_dropped")?,
        rx_length_errors: of("rx_length_errors")?,
        rx_over_errors: of("rx_over_errors")?,
        rx_crc_errors: of("rx_crc_errors")?,
        rx_frame_errors: of("rx_frame_errors")?,
        rx_fifo_errors: of("rx_fifo_errors")?,
        rx_missed_errors: of("rx_missed_errors")?,
        tx_aborted_errors: of("tx_aborted_errors")?,
        tx_carrier_errors: of("tx_carrier_errors")?,
        tx_fifo_errors: of("tx_fifo_errors")?,
        rx_nohandler: of("rx_nohandler"),
        rx_otherhost_dropped: of("rx_otherhost_dropped"),
    })
}
