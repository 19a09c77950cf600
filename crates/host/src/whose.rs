//! Whose host a snapshot is of: by the addresses that it shows, nothing else ties it to packets.
//!
//! An address that many hosts have says nothing: loopback, and the bridges that container and virtual machine
//! managers make on each host (`docker0`, `virbr0`).

use core::net::IpAddr;
use std::collections::{BTreeMap, BTreeSet};

use super::snapshot::{Link, Snapshot};

impl Snapshot {
    /// Addresses of this host: of its interfaces, its sockets' own ends and the sources of its routes.
    pub fn addresses(&self) -> BTreeSet<IpAddr> {
        let mut all = BTreeSet::new();
        for look in &self.looks {
            let sockets = look.sockets.iter().flatten().map(|socket| socket.local.ip());
            let listeners = look.listeners.iter().flatten().map(|listener| listener.local.ip());
            let waiting = look.time_wait.iter().flatten().map(|occupied| occupied.local);
            all.extend(sockets.chain(listeners).chain(waiting));
            for link in look.links.iter().flatten().filter(|link| !is_made_on_each_host(link)) {
                all.extend(link.addresses.iter().map(|(address, _)| *address));
            }
        }
        all.extend(self.routes.iter().flatten().filter_map(|route| route.src));
        let shared = self.addresses_on_each_host();
        let own = all.into_iter().map(|address| address.to_canonical());
        own.filter(|address| {
            !address.is_loopback()
                && !address.is_unspecified()
                && !self.named.contains_key(address)
                && !shared.contains(address)
        })
        .collect()
    }

    fn addresses_on_each_host(&self) -> BTreeSet<IpAddr> {
        let links = self.looks.iter().flat_map(|look| look.links.iter().flatten());
        let shared = links.filter(|link| is_made_on_each_host(link));
        shared.flat_map(|link| link.addresses.iter().map(|(address, _)| *address)).collect()
    }

    /// Addresses by interface, without those that are on each host.
    pub(super) fn addresses_by_link(&self) -> BTreeMap<&str, BTreeSet<IpAddr>> {
        let mut all: BTreeMap<&str, BTreeSet<IpAddr>> = BTreeMap::new();
        for link in self.looks.iter().flat_map(|look| look.links.iter().flatten()) {
            if !is_made_on_each_host(link) {
                let addresses = link.addresses.iter().map(|(address, _)| *address);
                all.entry(&link.name).or_default().extend(addresses.filter(IpAddr::is_ipv4));
            }
        }
        all
    }
}

/// Names by Docker (`docker0`, `br-`), libvirt (`virbr`), LXC (`lxcbr`) and the CNI plugins (`cni0`).
fn is_made_on_each_host(link: &Link) -> bool {
    let bridges = ["docker", "br-", "virbr", "lxcbr", "lxdbr", "cni"];
    link.loopback || link.name == "lo" || bridges.iter().any(|name| link.name.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::super::paste::read;

    #[test]
    fn addresses_that_each_host_has_say_nothing() {
        let text = "2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq state UP qlen 1000\n    \
                    inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0\n\
                    3: docker0: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state UP\n    \
                    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\n\
                    ESTAB 0 0 172.17.0.1:80 172.17.0.2:5000\n\
                    ESTAB 0 0 127.0.0.1:80 127.0.0.1:5000\n\
                    ESTAB 0 0 [::ffff:10.0.0.9]:80 [::ffff:10.0.0.7]:5000\n\
                    default via 10.0.0.254 dev eth0 src 10.0.0.3\n";
        let told = read(text).snapshot.addresses();
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["10.0.0.1", "10.0.0.3", "10.0.0.9"]);
    }

    #[test]
    fn a_name_in_the_place_of_an_address_is_none() {
        let told = read("ESTAB 0 0 web-1:http db-2:5000\n").snapshot;
        assert!(told.addresses().is_empty(), "{:?}", told.addresses());
    }
}
