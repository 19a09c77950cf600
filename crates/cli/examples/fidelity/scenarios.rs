//! Seeded random experiments, within what the model has.

use std::fmt::Write as _;

use tcpwhy_model::path::Chance;

/// The text of an experiment; what is drawn depends on the set's seed and the number alone.
pub(super) fn random(seed: u64, number: u32, lossy: bool) -> String {
    let mut dice = Chance::new(seed.rotate_left(32) ^ u64::from(number) ^ u64::from(lossy) << 63);
    for _ in 0..3 {
        dice.draw();
    }
    let rtt_us = log_between(&mut dice, 1_000, 200_000);
    let rate_kbit = log_between(&mut dice, 2_000, 1_000_000);
    let bdp = (rate_kbit * rtt_us / 8_000).max(15_140);
    let mut text = format!(
        "seed = {}\n[path]\nrtt = \"{rtt_us}us\"\nrate = \"{rate_kbit}kbit\"\n",
        dice.below(1 << 30)
    );
    if lossy {
        let first = log_between(&mut dice, 1, 300);
        let more: Vec<_> = (0..dice.below(4)).map(|_| first + 1 + dice.below(40)).collect();
        let more: Vec<_> = more.iter().map(u64::to_string).collect();
        let _ = writeln!(text, "down.loss = \"exact {first} {}\"", more.join(" "));
    } else if dice.below(3) == 0 {
        // Long enough that slow start's last doubling still fits.
        let _ = writeln!(text, "queue = \"{}B\"", bdp * 64);
    }
    hosts(&mut dice, &mut text);
    application(&mut dice, &mut text, rate_kbit, rtt_us);
    text
}

fn hosts(dice: &mut Chance, text: &mut String) {
    let controller = ["cubic", "cubic", "reno"][dice.below(3) as usize];
    let _ = writeln!(text, "[server]\nroute.congctl = \"{controller}\"");
    if dice.below(5) == 0 {
        let _ = writeln!(text, "route.initcwnd = {}", log_between(dice, 3, 100));
    }
    let mut client = String::new();
    for (name, value) in [
        ("tcp_timestamps", "0"),
        ("tcp_sack", "0"),
        ("tcp_window_scaling", "0"),
        ("tcp_slow_start_after_idle", "0"),
    ] {
        if dice.below(10) == 0 {
            let _ = writeln!(text, "sysctl.net.ipv4.{name} = \"{value}\"");
        }
        if dice.below(20) == 0 {
            let _ = writeln!(client, "sysctl.net.ipv4.{name} = \"{value}\"");
        }
    }
    let mut socket = String::new();
    if dice.below(6) == 0 {
        let _ = writeln!(socket, "sndbuf = \"{}B\"", log_between(dice, 8_192, 500_000));
    }
    if dice.below(6) == 0 {
        let _ = writeln!(socket, "nodelay = true");
    }
    if dice.below(12) == 0 {
        let _ = writeln!(socket, "notsent_lowat = \"{}B\"", log_between(dice, 4_096, 200_000));
    }
    if !socket.is_empty() {
        let _ = writeln!(text, "[server.socket]\n{socket}");
    }
    if dice.below(6) == 0 {
        let _ = write!(
            client,
            "[client.socket]\nrcvbuf = \"{}B\"\n",
            log_between(dice, 4_096, 500_000)
        );
    }
    if !client.is_empty() {
        let _ = writeln!(text, "[client]\n{client}");
    }
}

fn application(dice: &mut Chance, text: &mut String, rate_kbit: u64, rtt_us: u64) {
    // About a second of the link or fifty round trips, whatever is more, within bounds.
    let second = rate_kbit * 125;
    let size = log_between(dice, 10_000, (second / 2).clamp(200_000, 6_000_000));
    text.push_str("[application]\n");
    match dice.below(6) {
        0 => {
            let _ = writeln!(text, "exchange = \"{}B\"", log_between(dice, 100, 200_000));
            let _ = writeln!(text, "times = {}", 2 + dice.below(8));
            let _ = writeln!(text, "request = \"{}B\"", log_between(dice, 10, 5_000));
            let _ = writeln!(text, "think = \"{}us\"", dice.below(50_000));
            if dice.below(2) == 0 {
                let _ = writeln!(text, "idle = \"{}us\"", log_between(dice, 1_000, 2_000_000));
            }
        }
        1 => {
            let _ = writeln!(text, "post = \"{size}B\"");
        }
        2 => {
            let write = log_between(dice, 500, 60_000);
            let _ = writeln!(text, "send = \"{}B\"\nwrite = \"{write}B\"", size.min(write * 100));
            let _ = writeln!(text, "pause = \"{}us\"", log_between(dice, 100, 4 * rtt_us));
        }
        3 => {
            let _ = writeln!(text, "download = \"{size}B\"");
            let _ = writeln!(text, "read = \"{}B\"", log_between(dice, 2_000, 60_000));
            let _ = writeln!(text, "read_pause = \"{}us\"", log_between(dice, 50, 3_000));
        }
        _ => {
            let _ = writeln!(text, "download = \"{size}B\"");
            if dice.below(3) == 0 {
                let _ = writeln!(text, "write = \"{}B\"", log_between(dice, 1_000, 300_000));
            }
        }
    }
}

/// A number between two, each order of magnitude as likely as another.
fn log_between(dice: &mut Chance, low: u64, high: u64) -> u64 {
    let (bits_low, bits_high) = ((low.max(1) as f64).ln(), (high.max(low + 1) as f64).ln());
    let share = dice.below(1 << 20) as f64 / f64::from(1 << 20);
    let value = (bits_low + (bits_high - bits_low) * share).exp() as u64;
    value.clamp(low, high)
}
