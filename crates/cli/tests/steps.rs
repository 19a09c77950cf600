//! Do the steps of `fix.sh` and `rollback.sh` know again what the system says of what they set?
//!
//! The tools are stand-ins: they print what iproute2 6.1, ethtool 6.1 and Linux 6.18 do before a change and
//! after it, and change over when they are given the very command of the step, or its undoing.

use std::fs;
use std::path::Path;
use std::process::Command;

use tcpwhy::host::script::scripts;
use tcpwhy::host::snapshot::Snapshot;
use tcpwhy::host::{Change, Finding, Fix, Severity};

#[test]
fn a_step_is_done_known_again_and_taken_back() {
    for (change, before, after) in cases() {
        let told = format!("{change:?}");
        let folder = tempfile::tempdir().expect("a folder");
        let system = System::new(folder.path(), &change, &before, &after);
        assert_eq!(system.run("fix.sh"), (0, "done".to_owned()), "{told}");
        assert_eq!(system.run("fix.sh"), (0, "is so already".to_owned()), "{told}");
        assert_eq!(system.run("rollback.sh"), (0, "done".to_owned()), "{told}");
        assert_eq!(system.run("rollback.sh"), (0, "is so already".to_owned()), "{told}");
    }
}

#[test]
fn what_is_as_nobody_saw_it_is_left_alone_and_not_kept() {
    let change = sysctl();
    let folder = tempfile::tempdir().expect("a folder");
    let system = System::new(folder.path(), &change, "128\n", "4096\n");
    system.says("1024\n");
    assert_eq!(system.run("fix.sh"), (1, "left alone".to_owned()));
    assert!(!folder.path().join("kept.conf").exists());
    system.says("128\n");
    assert_eq!(system.run("fix.sh"), (0, "done".to_owned()));
    let kept = fs::read_to_string(folder.path().join("kept.conf")).expect("is there");
    assert_eq!(kept, "net.core.somaxconn = 4096\n");
    assert_eq!(system.run("rollback.sh"), (0, "done".to_owned()));
    assert!(!folder.path().join("kept.conf").exists());
}

#[test]
fn each_of_several_values_is_looked_at() {
    let change = ethtool("-A", "rx on tx on", "rx off tx off");
    let folder = tempfile::tempdir().expect("a folder");
    let system = System::new(folder.path(), &change, &pause("on", "on"), &pause("off", "off"));
    system.says(&pause("off", "on"));
    assert_eq!(system.run("fix.sh"), (1, "left alone".to_owned()));
    system.says(&pause("on", "off"));
    assert_eq!(system.run("fix.sh"), (1, "left alone".to_owned()));
}

/// What a file says is what the kernel makes of what was written: more digits, or a number behind the word.
#[test]
fn a_file_is_known_again_as_the_kernel_prints_it() {
    let cases = [
        ("bonding/xmit_hash_policy", "layer2", "layer3+4", ["layer2 0", "layer3+4 1"]),
        ("rps_cpus", "00000000,0000000f", "0", ["00000000,0000000f", "00000000,00000000"]),
        ("rps_cpus", "00", "f", ["00", "0f"]),
        ("limit_max", "3000", "1879048192", ["3000", "1879048192"]),
    ];
    for (name, from, to, [before, after]) in cases {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let prints = |text: &str| fs::write(&path, format!("{text}\n")).expect("written");
        let path = path.to_str().expect("UTF-8").to_owned();
        let change = Change::File { path, from: from.to_owned(), to: to.to_owned() };
        let system = System::new(folder.path(), &change, "", "");
        prints("12345");
        assert_eq!(system.run("fix.sh"), (1, "left alone".to_owned()), "{name}");
        prints(before);
        assert_eq!(system.run("fix.sh"), (0, "done".to_owned()), "{name}");
        prints(after);
        assert_eq!(system.run("fix.sh"), (0, "is so already".to_owned()), "{name}");
        assert_eq!(system.run("rollback.sh"), (0, "done".to_owned()), "{name}");
        prints(before);
        assert_eq!(system.run("rollback.sh"), (0, "is so already".to_owned()), "{name}");
    }
}

/// A change, and what is printed before and after it.
fn cases() -> Vec<(Change, String, String)> {
    let text = str::to_owned;
    let link =
        |from: &str, to: &str| Change::Link { dev: text("eth0"), from: text(from), to: text(to) };
    let qdisc = |to: &str| Change::Qdisc {
        dev: text("eth0"),
        from: text("netem limit 1000 delay 100ms"),
        handle: 0x8001_0000,
        to: text(to),
    };
    let netem = text("qdisc netem 8001: root refcnt 2 limit 1000 delay 100ms\n");
    let ring = |rx: &str| {
        format!(
            "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\n\
             RX:\t\t{rx}\nTX:\t\t256\n"
        )
    };
    let route = |metrics: &str| {
        format!("default via 10.0.0.1 dev eth0 \n10.8.0.0/16 via 10.9.0.2 dev eth0{metrics} \n")
    };
    vec![
        (sysctl(), text("128\n"), text("4096\n")),
        (link("mtu 9000", "mtu 1500"), shown_link(9000, 65_536), shown_link(1500, 65_536)),
        (
            link("gso_max_size 8192", "gso_max_size 65536"),
            shown_link(1500, 8192),
            shown_link(1500, 65_536),
        ),
        (
            link("mtu 9000 gso_max_size 8192", "mtu 1500 gso_max_size 65536"),
            shown_link(9000, 8192),
            shown_link(1500, 65_536),
        ),
        (ethtool("-G", "rx 256", "rx 1024"), ring("256"), ring("1024")),
        (ethtool("-A", "rx on tx on", "rx off tx off"), pause("on", "on"), pause("off", "off")),
        (ethtool("-K", "rx-gro off", "rx-gro on"), features("off"), features("on")),
        (
            ethtool("-K", "tx-scatter-gather off", "tx-scatter-gather on"),
            features("off"),
            features("on"),
        ),
        (qdisc(""), netem.clone(), text("qdisc noqueue 0: root refcnt 2 \n")),
        (
            qdisc("fq_codel"),
            netem,
            text("qdisc fq_codel 8002: root refcnt 2 limit 10240p flows 1024\n"),
        ),
        (
            Change::Route {
                from: text("10.8.0.0/16 via 10.9.0.2 dev eth0 mtu lock 1400 rto_min 5ms"),
                to: text("10.8.0.0/16 via 10.9.0.2 dev eth0 rto_min lock 5ms"),
                ipv6: false,
            },
            route(" mtu lock 1400 rto_min lock 5ms"),
            route(" rto_min lock 5ms"),
        ),
    ]
}

fn sysctl() -> Change {
    let [key, from, to] = ["net.core.somaxconn", "128", "4096"].map(str::to_owned);
    Change::Sysctl { key, from, to }
}

fn ethtool(option: &str, from: &str, to: &str) -> Change {
    let [dev, option, from, to] = ["eth0", option, from, to].map(str::to_owned);
    Change::Ethtool { dev, option, from, to }
}

fn pause(rx: &str, tx: &str) -> String {
    format!("Pause parameters for eth0:\nAutonegotiate:\toff\nRX:\t\t{rx}\nTX:\t\t{tx}\n")
}

fn features(word: &str) -> String {
    format!(
        "Features for eth0:\nrx-checksumming: {word}\nscatter-gather: {word}\n\ttx-scatter-gather: {word}\n\
         \ttx-scatter-gather-fraglist: off [fixed]\ngeneric-receive-offload: {word}\n"
    )
}

fn shown_link(mtu: u32, gso_max_size: u32) -> String {
    format!(
        "3: eth0@if2: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {mtu} qdisc noqueue state UP mode DEFAULT group default qlen 1000\n    \
         link/ether 2a:8e:4f:a2:3f:f7 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 \n    \
         veth numtxqueues 2 numrxqueues 2 gso_max_size {gso_max_size} gso_max_segs 65535 tso_max_size 524280\n"
    )
}

/// A folder with both scripts and the tools that they call.
struct System<'a>(&'a Path);

impl<'a> System<'a> {
    fn new(folder: &'a Path, change: &Change, before: &str, after: &str) -> Self {
        let commands = change.commands();
        let undo = commands.undo.expect("it can be taken back");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
        let words = |command: &str| command.split_once(' ').expect("words").1.replace('\'', "");
        let here = folder.display();
        let tool = format!(
            "case \"$*\" in\n'{}') cat {here}/after > {here}/now ;;\n'{}') cat {here}/before > {here}/now ;;\n\
             *) cat {here}/now ;;\nesac\n",
            words(&commands.apply),
            words(&undo)
        );
        let tools = ["sysctl", "ip", "tc", "ethtool"]
            .map(|name| format!("{name}() {{ {tool} }}\n"))
            .concat();
        for (name, text) in [("before", before), ("after", after), ("now", before)] {
            write(name, text);
        }
        let fix = Fix { set: Some(change.clone()), ..Fix::default() };
        let found = Finding { severity: Severity::Warning, fixes: vec![fix], ..Finding::default() };
        let both = scripts(&Snapshot::default(), &[found]).expect("something to set");
        write("fix.sh", &format!("{tools}{}", both.fix));
        write("rollback.sh", &format!("{tools}{}", both.rollback));
        Self(folder)
    }

    fn says(&self, text: &str) {
        fs::write(self.0.join("now"), text).expect("written");
    }

    /// How it ended, and what it told of its step.
    fn run(&self, script: &str) -> (i32, String) {
        let mut command = Command::new("sh");
        command.arg(self.0.join(script)).env("KEPT_IN", self.0.join("kept.conf"));
        let done = command.output().expect("it starts");
        let told = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
        let last = ["is so already", "left alone", "done"].into_iter().find(|it| told.contains(it));
        (done.status.code().expect("an end"), last.unwrap_or(&told).to_owned())
    }
}
