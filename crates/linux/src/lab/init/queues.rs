//! Queueing disciplines, policers and classifiers of a layout, by netlink (tc).

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use tcpwhy_model::scenario::plan::{Loss, Overhead, Ppm};

use super::system;
use crate::lab::layout::{Discipline, Limit, Netem, Police, Tbf};
use crate::netlink::{Netlink, Request};

/// Puts a discipline at the root of a device, or changes the one that is there: what waits in it
/// stays.
pub(super) fn egress(
    netlink: &mut Netlink,
    device: &str,
    discipline: &Discipline,
    there: bool,
) -> io::Result<()> {
    let head = head(system::index(device)?, ROOT_HANDLE, TC_H_ROOT, 0);
    let mut request = Request::new(RTM_NEWQDISC, if there { 0 } else { CREATE }, &head);
    match discipline {
        Discipline::Fq => drop(request.name(TCA_KIND, "fq")),
        Discipline::FqCodel | Discipline::Fifo(Limit::FqCodel) => {
            request.name(TCA_KIND, "fq_codel");
        }
        Discipline::Fifo(Limit::Bytes(limit)) => {
            request.name(TCA_KIND, "bfifo").number(TCA_OPTIONS, *limit);
        }
        Discipline::Fifo(Limit::Packets(limit)) => {
            request.name(TCA_KIND, "pfifo").number(TCA_OPTIONS, *limit);
        }
        Discipline::Tbf(tbf) => bucket(&mut request, tbf),
        Discipline::Netem(netem) => emulator(&mut request, netem),
    }
    netlink.carry_out(&request)?;
    match discipline {
        Discipline::Tbf(Tbf { limit: Limit::Packets(packets), .. }) if !there => {
            child(netlink, device, "pfifo", Some(*packets))
        }
        Discipline::Tbf(Tbf { limit: Limit::FqCodel, .. }) if !there => {
            child(netlink, device, "fq_codel", None)
        }
        _ => Ok(()),
    }
}

/// Replaces a token bucket's queue in bytes by another.
fn child(netlink: &mut Netlink, device: &str, kind: &str, limit: Option<u32>) -> io::Result<()> {
    let head = head(system::index(device)?, CHILD_HANDLE, ROOT_HANDLE | 1, 0);
    let mut request = Request::new(RTM_NEWQDISC, CREATE, &head);
    request.name(TCA_KIND, kind);
    if let Some(limit) = limit {
        request.number(TCA_OPTIONS, limit);
    }
    netlink.carry_out(&request)
}

/// `struct tc_tbf_qopt` and its wide twins.
fn bucket(request: &mut Request, tbf: &Tbf) {
    let rate = tbf.rate.div_ceil(8);
    let limit = match tbf.limit {
        Limit::Bytes(limit) | Limit::Packets(limit) => limit,
        // The queue in bytes that is replaced.
        Limit::FqCodel => ENDLESS,
    };
    let mut options = rate_spec(rate, tbf.overhead);
    options.extend([0; 12]);
    for number in [limit, 0, 0] {
        options.extend(number.to_ne_bytes());
    }
    request.name(TCA_KIND, "tbf").nest(TCA_OPTIONS, &[], |r| {
        r.attribute(TCA_TBF_PARMS, &options)
            .long(TCA_TBF_RATE64, rate)
            .number(TCA_TBF_BURST, tbf.burst.min(u32::MAX.into()) as u32);
    });
}

/// `struct tc_netem_qopt` and what follows it.
fn emulator(request: &mut Request, netem: &Netem) {
    let (lost, gilbert) = match netem.loss {
        Loss::Random(share) => (chance(share), None),
        // netem's third number is the chance to pass in the bad state (v6.12 `loss_gilb_ell`: the
        // packet is lost if a random number is above it), its fourth that of loss in the good one.
        Loss::Gilbert { enter, leave, bad } => {
            (0, Some([enter, leave, ALL.saturating_sub(bad), 0].map(chance)))
        }
        Loss::None | Loss::Exact(_) => (0, None),
    };
    let gap = u32::from(netem.at_once > 0);
    let mut options = Vec::new();
    for number in [0, ENDLESS, lost, gap, chance(netem.duplicate), 0] {
        options.extend(number.to_ne_bytes());
    }
    request.name(TCA_KIND, "netem").nest(TCA_OPTIONS, &options, |r| {
        r.long(TCA_NETEM_LATENCY64, netem.delay_ns)
            .long(TCA_NETEM_JITTER64, netem.jitter_ns)
            .long(TCA_NETEM_PRNG_SEED, netem.seed);
        if gap > 0 {
            let share = chance(netem.at_once).to_ne_bytes();
            r.attribute(TCA_NETEM_REORDER, &[share, [0; 4]].concat());
        }
        if let Some(numbers) = gilbert {
            r.nest(TCA_NETEM_LOSS, &[], |r| {
                r.attribute(NETEM_LOSS_GE, &numbers.map(u32::to_ne_bytes).concat());
            });
        }
        let cells = if netem.overhead.atm { [48_u32, 5] } else { [0, 0] };
        let [cell, more] = cells.map(u32::to_ne_bytes);
        // A rate of 0 takes an earlier one back.
        let rate = netem.rate.div_ceil(8);
        let narrow = rate.min(u32::MAX.into()) as u32;
        r.long(TCA_NETEM_RATE64, rate).attribute(
            TCA_NETEM_RATE,
            &[narrow.to_ne_bytes(), netem.overhead.bytes.to_ne_bytes(), cell, more].concat(),
        );
    });
}

/// Lets classifiers look at what comes and goes at a device.
pub(super) fn watch(netlink: &mut Netlink, device: &str) -> io::Result<()> {
    let head = head(system::index(device)?, TC_H_CLSACT & 0xffff_0000, TC_H_CLSACT, 0);
    let mut request = Request::new(RTM_NEWQDISC, CREATE, &head);
    netlink.carry_out(request.name(TCA_KIND, "clsact"))
}

/// Drops what finds no token on the way out of a watched device. A policer that is there goes, and
/// the new one begins with full credit.
pub(super) fn police(
    netlink: &mut Netlink,
    device: &str,
    police: Police,
    there: bool,
) -> io::Result<()> {
    let head = head(system::index(device)?, 0, EGRESS, FIRST_OF_ALL);
    if there {
        netlink.carry_out(&Request::new(RTM_DELTFILTER, 0, &head))?;
    }
    let rate = police.rate.div_ceil(8).max(1);
    // Credit is time: ticks of 64 ns at this rate (`PSCHED_SHIFT`).
    let ticks = u128::from(police.burst) * 1_000_000_000 / u128::from(rate) / 64;
    let mut options = Vec::new();
    for number in [0, TC_ACT_SHOT, 0, ticks.min(u32::MAX.into()) as u32, 1 << 24] {
        options.extend(number.to_ne_bytes());
    }
    options.extend(rate_spec(rate, police.overhead));
    options.extend([0; 24]);
    let mut request = Request::new(RTM_NEWTFILTER, CREATE, &head);
    request.name(TCA_KIND, "matchall").nest(TCA_OPTIONS, &[], |r| {
        r.nest(TCA_MATCHALL_ACT, &[], |r| {
            r.nest(1, &[], |r| {
                r.name(TCA_ACT_KIND, "police").nest(TCA_ACT_OPTIONS, &[], |r| {
                    // The table of times is asked for, and no longer used.
                    r.attribute(TCA_POLICE_TBF, &options)
                        .attribute(TCA_POLICE_RATE, &[0; 1024])
                        .long(TCA_POLICE_RATE64, rate);
                });
            });
        });
    });
    netlink.carry_out(&request)
}

/// Lets a program decide on what arrives at a watched device.
pub(super) fn decide(netlink: &mut Netlink, device: &str, program: &OwnedFd) -> io::Result<()> {
    let head = head(system::index(device)?, 0, INGRESS, FIRST_OF_ALL);
    let mut request = Request::new(RTM_NEWTFILTER, CREATE, &head);
    request.name(TCA_KIND, "bpf").nest(TCA_OPTIONS, &[], |r| {
        r.number(TCA_BPF_FD, program.as_raw_fd() as u32)
            .name(TCA_BPF_NAME, "fate")
            .number(TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
    });
    netlink.carry_out(&request)
}

/// `struct tcmsg`.
fn head(index: u32, handle: u32, parent: u32, info: u32) -> Vec<u8> {
    [0, index, handle, parent, info].map(u32::to_ne_bytes).concat()
}

/// `struct tc_ratespec`; its wide twin carries 4 Gbyte/s and more.
fn rate_spec(bytes_per_s: u64, overhead: Overhead) -> Vec<u8> {
    let layer = if overhead.atm { TC_LINKLAYER_ATM } else { TC_LINKLAYER_ETHERNET };
    let [low, high] = (overhead.bytes.min(u16::MAX.into()) as u16).to_ne_bytes();
    let mut spec = vec![4, layer, low, high, 0, 0, 0, 0];
    spec.extend((bytes_per_s.min(u32::MAX.into()) as u32).to_ne_bytes());
    spec
}

/// A share as netem and BPF programs compare it with a random number of 32 bits.
pub(super) fn chance(share: Ppm) -> u32 {
    let all = u64::from(u32::MAX);
    (u64::from(share) * all / 1_000_000).min(all) as u32
}

/// Everything, in parts of a million.
const ALL: Ppm = 1_000_000;

/// Ours: more packets than any run has on the way.
const ENDLESS: u32 = 1 << 30;

// linux/rtnetlink.h, pkt_sched.h, pkt_cls.h, tc_act/tc_police.h
const CREATE: u16 = 0x400 | 0x200;
const RTM_NEWQDISC: u16 = 36;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_CLSACT: u32 = 0xffff_fff1;
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
const ROOT_HANDLE: u32 = 1 << 16;
const CHILD_HANDLE: u32 = 2 << 16;
/// Priority 1, any protocol (`ETH_P_ALL`, in network order).
const FIRST_OF_ALL: u32 = 1 << 16 | (libc::ETH_P_ALL as u16).to_be() as u32;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TC_LINKLAYER_ATM: u8 = 2;
const TC_ACT_SHOT: u32 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
const TCA_MATCHALL_ACT: u16 = 2;
const TCA_ACT_KIND: u16 = 1;
const TCA_ACT_OPTIONS: u16 = 2;
const TCA_POLICE_TBF: u16 = 1;
const TCA_POLICE_RATE: u16 = 2;
const TCA_POLICE_RATE64: u16 = 8;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fill_the_range_of_random_numbers() {
        assert_eq!(chance(0), 0);
        assert_eq!(chance(500_000), u32::MAX / 2);
        assert_eq!(chance(1_000_000), u32::MAX);
        assert_eq!(chance(2_000_000), u32::MAX, "more than all is all");
    }

    #[test]
    fn the_structures_have_the_kernels_sizes() {
        assert_eq!(head(1, 2, 3, 4).len(), 20, "struct tcmsg");
        let none = Overhead::default();
        assert_eq!(rate_spec(1, none).len(), 12, "struct tc_ratespec");
        assert_eq!(rate_spec(u64::MAX, none)[8..], u32::MAX.to_ne_bytes());
    }
}
