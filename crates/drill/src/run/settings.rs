//! What kind of host does a script run on?

use core::net::IpAddr;
use std::collections::BTreeMap;

use super::Stop;
use super::addresses::{Addresses, Suite};
use super::cookies::{Key, key_of_sysctl};
use super::port::Reuse;
use crate::error::{Place, ScriptError};
use crate::parser::Definitions;
use crate::script::{Command, Script};
use crate::shell::{self, REFUSING, Setting};
use tcpwhy_model::profile::{KernelProfile, Memory, ReceiveCharge, Route, Sysctl, Version};

/// What is settled before a script is read.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The kernel that the model is.
    pub version: Version,
    /// Its timer's ticks in a second.
    pub hz: u32,
    /// Names for scripts, as of packetdrill's `-D`.
    pub defined: Definitions,
    /// Options as of packetdrill's command line, which a script's own override.
    pub options: Vec<(String, Option<String>)>,
}

impl Default for Setup {
    fn default() -> Setup {
        // The kernel's own scripts ask for CONFIG_HZ_1000 (tools/testing/selftests/net/packetdrill/config).
        Setup {
            version: Version::new(6, 18),
            hz: 1000,
            defined: Definitions::new(),
            options: Vec::new(),
        }
    }
}

impl Setup {
    /// The names that a script may use. They are needed before it can be read, and depend on an
    /// option in it.
    pub(super) fn definitions(&self, text: &str) -> Definitions {
        let asked = |(name, value): &(String, Option<String>)| {
            name == "ip_version" && value.as_deref() == Some("ipv6")
        };
        let ipv6 = text.contains("--ip_version=ipv6") || self.options.iter().any(asked);
        let mut all = Suite::of(text).definitions(ipv6);
        all.extend(self.defined.clone());
        all
    }
}

/// A host and how its packets are compared.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent settings")]
pub(super) struct Settings {
    pub(super) kernel: KernelProfile,
    pub(super) sysctl: Sysctl,
    pub(super) route: Route,
    pub(super) mtu: u32,
    pub(super) ipv6: bool,
    /// The queue of the device holds packets back until they are due.
    pub(super) paces: bool,
    /// It takes nothing.
    pub(super) refuses: bool,
    /// Super-segments are cut only behind the tap.
    pub(super) offload: bool,
    pub(super) tolerance_us: u64,
    /// In thousandths of the time since the event before, if that is more.
    pub(super) tolerance_permille: u64,
    pub(super) stamp_tick_us: u64,
    /// Payload of the packets that a larger one that comes in was made of; 0 if it is not said.
    pub(super) injected_piece: u16,
    /// Packets that are alike are not joined before they are compared.
    pub(super) strict: bool,
    /// The key of a server's cookies for Fast Open.
    pub(super) key: Key,
    /// Whose customs the script follows.
    suite: Suite,
    addresses: Addresses,
    /// How often what is remembered of the peer was thrown away.
    pub(super) flushes: u32,
    /// When a client may have a port again.
    pub(super) reuse: Reuse,
    /// Files that commands made, and their sizes.
    pub(super) files: BTreeMap<String, u64>,
}

impl Settings {
    pub(super) fn of(script: &Script, setup: &Setup) -> Result<Settings, Stop> {
        let kernel = KernelProfile::of(setup.version);
        let memory = Memory { receive: ReceiveCharge::Copied, ..kernel.memory };
        let kernel = KernelProfile { hz: setup.hz, memory, ..kernel };
        let mut settings = Settings {
            sysctl: Sysctl::of(&kernel),
            kernel,
            route: Route::default(),
            mtu: 1500,
            ipv6: false,
            paces: false,
            refuses: false,
            offload: true,
            // set_default_config of gtests/net/packetdrill/config.c.
            tolerance_us: 4000,
            // Of the same file: as late as the kernel's timer wheel may be (12.5 %).
            tolerance_permille: 125,
            stamp_tick_us: 0,
            injected_piece: 0,
            strict: false,
            key: Key::default(),
            suite: Suite::of(script.setup.as_ref().map_or("", |command| &command.text)),
            addresses: Addresses::default(),
            flushes: 0,
            reuse: Reuse::default(),
            files: BTreeMap::new(),
        };
        for (name, value) in setup.options.iter().chain(&script.options) {
            settings.option(name, value.as_deref())?;
        }
        if let Some(command) = &script.setup {
            settings.apply(command)?;
        }
        Ok(settings)
    }

    /// The remote and the local address.
    pub(super) fn address_bytes(&self) -> Vec<u8> {
        self.addresses.bytes(self.suite, self.ipv6)
    }

    /// How far off the time of an event may be that is so long after the one before
    /// (`verify_time` of gtests/net/packetdrill/run.c).
    pub(super) fn tolerance_ns(&self, since_ns: u64) -> u64 {
        let share = since_ns / 1000 * self.tolerance_permille;
        self.tolerance_us.saturating_mul(1000).max(share)
    }

    /// An option of packetdrill.
    fn option(&mut self, name: &str, value: Option<&str>) -> Result<(), Stop> {
        let place = Place { line: 1, column: 1 };
        let number = || {
            value.and_then(|value| value.parse::<u32>().ok()).ok_or_else(|| {
                ScriptError::syntax(
                    place,
                    &format!("a number for --{name}"),
                    value.unwrap_or("none"),
                )
            })
        };
        match name {
            "tolerance_usecs" => self.tolerance_us = number()?.into(),
            "tolerance_percent" => self.tolerance_permille = permille(value, place)?,
            "tcp_ts_tick_usecs" => self.stamp_tick_us = number()?.into(),
            "mtu" => self.mtu = mtu(number()?, place)?,
            "mss" => self.injected_piece = number()?.min(u16::MAX.into()) as u16,
            "ip_version" => match value {
                Some("ipv4" | "ipv4-mapped-ipv6") => self.ipv6 = false,
                // The kernel's runner of its own scripts gives IPv6 20 bytes more, so that segment
                // sizes are those of IPv4.
                Some("ipv6") => (self.ipv6, self.mtu) = (true, 1520),
                _ => {
                    let found = value.unwrap_or("none");
                    return Err(ScriptError::syntax(
                        place,
                        "ipv4, ipv6 or ipv4-mapped-ipv6 for --ip_version",
                        found,
                    )
                    .into());
                }
            },
            "strict_segments" => self.strict = true,
            "local_ip" => self.addresses.local = address(value),
            "remote_ip" => self.addresses.remote = address(value),
            // Of gateways, ports, pauses, output and buffers nothing shows. An echo that is no timestamp
            // of ours is as far from the first one of those as the script has it, asked for or not.
            "gateway_ip" | "netmask_ip" | "bind_port" | "connect_port" | "tcp_ts_ecr_scaled"
            | "speed" | "verbose" | "send_omit_free" | "define" | "init_scripts"
            | "code_command" | "code_format" => {}
            _ => {
                return Err(Stop::Unsupported { place, construct: format!("the option --{name}") });
            }
        }
        Ok(())
    }

    /// `tcp_tw_reuse_delay` came with v6.14.
    fn has_reuse_delay(&self) -> bool {
        self.kernel.version >= Version::new(6, 14)
    }

    /// What a shell command sets.
    pub(super) fn apply(&mut self, command: &Command) -> Result<(), Stop> {
        let place = command.place;
        for setting in shell::settings(command)? {
            match setting {
                Setting::Sysctl(name, value) => {
                    let refused = |why| Stop::Unsupported {
                        place,
                        construct: format!("sysctl {name}={value}{why}"),
                    };
                    // Accurate ECN is asked for by 3 and up.
                    if name == "net.ipv4.tcp_ecn"
                        && value.trim().parse::<u8>().is_ok_and(|mode| mode > 2)
                    {
                        return Err(refused(" (accurate ECN)"));
                    }
                    // 2 answers every SYN with a cookie, which knows four segment sizes only.
                    if name == "net.ipv4.tcp_syncookies" && value.trim() == "2" {
                        return Err(refused(" (cookies without need)"));
                    }
                    if name == "net.ipv4.tcp_fastopen_key" {
                        self.key = key_of_sysctl(&value).ok_or_else(|| refused(""))?;
                    } else if name == "net.ipv4.tcp_tw_reuse" {
                        self.reuse.allowed = value.trim() == "1";
                    } else if name == "net.ipv4.tcp_tw_reuse_delay" && self.has_reuse_delay() {
                        self.reuse.after_ms = value.trim().parse().map_err(|_| refused(""))?;
                    } else if !WITHOUT_EFFECT.contains(&name.as_str()) {
                        self.sysctl.set(&name, value.trim()).map_err(|_| refused(""))?;
                    }
                }
                Setting::Route(word, value) => self.route.set(&word, &value).map_err(|_| {
                    Stop::Unsupported { place, construct: format!("`{word} {value}` of a route") }
                })?,
                Setting::Queue(kind) => {
                    let known =
                        ["fq", "pfifo", "bfifo", "pfifo_fast", "fq_codel", "noqueue", REFUSING];
                    if !known.contains(&kind.as_str()) {
                        let construct = format!("the queue {kind}");
                        return Err(Stop::Unsupported { place, construct });
                    }
                    (self.paces, self.refuses) = (kind == "fq", kind == REFUSING);
                }
                Setting::Offload(on) => self.offload = on,
                Setting::FlushMetrics => self.flushes += 1,
                // The run looks at them.
                Setting::Counters(_) => {}
                Setting::Mtu(size) => self.mtu = mtu(size, place)?,
                Setting::File(name, bytes) => {
                    self.files.insert(name, bytes);
                }
            }
        }
        Ok(())
    }
}

/// An address; one that is a prefix or no address leaves the suite's.
fn address(value: Option<&str>) -> Option<IpAddr> {
    value?.parse().ok()
}

/// Thousandths of a percentage such as `12.5`.
fn permille(value: Option<&str>, place: Place) -> Result<u64, Stop> {
    let text = value.unwrap_or_default();
    let (whole, tenths) = text.split_once('.').unwrap_or((text, "0"));
    let tenths = tenths.get(..1).unwrap_or("0");
    match (whole.parse::<u32>(), tenths.parse::<u32>()) {
        (Ok(whole), Ok(tenths)) => Ok(u64::from(whole) * 10 + u64::from(tenths)),
        _ => Err(ScriptError::syntax(place, "a percentage such as 12.5", text).into()),
    }
}

/// An MTU that a device can have (RFC 791, section 3.2; `IP_MAX_MTU`).
fn mtu(size: u32, place: Place) -> Result<u32, Stop> {
    match size {
        68..=65_535 => Ok(size),
        _ => Err(ScriptError::syntax(place, "an MTU from 68 to 65535", &size.to_string()).into()),
    }
}

/// Sysctls that change nothing a script can see in a host that has one connection.
const WITHOUT_EFFECT: [&str; 5] = [
    // What a middlebox drops is not looked for.
    "net.ipv4.tcp_fastopen_blackhole_timeout_sec",
    "net.ipv4.tcp_fack",
    "net.ipv4.tcp_syncookies",
    "net.core.default_qdisc",
    "net.ipv4.ip_local_port_range",
];
