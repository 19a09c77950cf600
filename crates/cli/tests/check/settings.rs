//! Settings that slow everything: found, cured by `fix.sh`, and brought back by `rollback.sh`.

use std::process::Command;

use crate::common::path::apart;
use crate::space::{ONCE, checked, script, set, setting, write_scripts};

#[test]
fn settings_that_slow_everything_are_found_cured_and_brought_back() {
    const WRONG: [(&str, &str, &str); 5] = [
        ("net.ipv4.tcp_moderate_rcvbuf", "0", "AUTOTUNING_OFF"),
        ("net.ipv4.tcp_window_scaling", "0", "WINDOW_SCALING_OFF"),
        ("net.ipv4.tcp_sack", "0", "LOSS_RECOVERY_OFF"),
        ("net.ipv4.tcp_timestamps", "0", "LOSS_RECOVERY_OFF"),
        ("net.ipv4.tcp_abort_on_overflow", "1", "ABORT_ON_OVERFLOW"),
    ];
    apart(|folder| {
        let before = checked(&ONCE);
        for (key, value, code) in WRONG {
            assert!(!before.contains_key(code), "{code} before anything was changed");
            set(key, value);
        }
        let found = checked(&ONCE);
        for (_, _, code) in WRONG {
            assert!(found.contains_key(code), "{code} is not in {:?}", found.keys());
        }
        write_scripts(folder, &ONCE);
        script(folder, "fix.sh");
        let cured = checked(&ONCE);
        let is = |code: &&str| cured.contains_key(*code);
        assert_eq!(WRONG.map(|(_, _, code)| code).iter().find(|code| is(code)), None);
        assert!(!folder.join("kept.conf").exists(), "files of sysctl.d are of the host");
        assert!(script(folder, "fix.sh").contains("is so already"));
        script(folder, "rollback.sh");
        for (key, value, _) in WRONG {
            assert_eq!(setting(key), value, "{key} is as it was");
        }
    });
}

#[test]
fn a_setting_that_somebody_else_changed_is_left_alone() {
    apart(|folder| {
        set("net.ipv4.tcp_abort_on_overflow", "1");
        write_scripts(folder, &ONCE);
        set("net.ipv4.tcp_abort_on_overflow", "2");
        let done =
            Command::new("sh").arg(folder.join("fix.sh")).env("KEPT_IN", "/dev/null").output();
        let done = done.expect("it starts");
        assert!(!done.status.success());
        assert!(String::from_utf8_lossy(&done.stderr).contains("left alone"));
        assert_eq!(setting("net.ipv4.tcp_abort_on_overflow"), "2");
    });
}
