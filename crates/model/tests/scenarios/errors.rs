//! What is said of a scenario that is wrong: where, why, and what to write.

use tcpwhy_model::scenario::Scenario;

use super::{MINIMAL, said};

#[test]
fn errors_name_line_column_and_what_was_meant() {
    for (lines, error) in [
        ("path.rtt = 6", "line 1, column 12: `path.rtt`: 6 has no unit; write it as \"6ms\""),
        (
            "[path]\nqeue = \"1kB\"",
            "line 2, column 1: `path` has no key `qeue`; did you mean `queue`?",
        ),
        (
            "rtt = \"6ms\"",
            "line 1, column 1: a scenario has no key `rtt`; known are name, about, subject, ipv6, repeats, seed, limit, tail, client, server, path, application, applications, records, article, expect, variants",
        ),
        (
            "path.rtt = \"2min\"",
            "line 1, column 12: `path.rtt`: 2min is out of range; it goes from 0 to 1min",
        ),
        (
            "path = { rate = \"1mbit\", bucket = { rate = \"1mbit\", burst = \"3kB\" } }",
            "line 1, column 26: a link has a `rate` or a `bucket`, not both: the bucket has its own rate",
        ),
        (
            "server.route.initcwd = 10",
            "line 1, column 14: unknown word of a route `initcwd`; did you mean `initcwnd`?",
        ),
        (
            "client.sysctl.\"kernel.panic\" = 1",
            "line 1, column 15: `client.sysctl.kernel.panic` cannot be set: only names below `net.` belong to one host alone; leave it out",
        ),
        (
            "client.sysctl.net.ipv4.tcp_mem = 1",
            "line 1, column 24: `client.sysctl.net.ipv4.tcp_mem` holds for the whole machine, which no experiment may touch; leave it out",
        ),
        (
            "server.egress = \"fqcodel\"",
            "line 1, column 17: unknown queueing discipline `fqcodel`; did you mean `fq_codel`?",
        ),
        (
            "path.loss = \"often\"",
            "line 1, column 13: `path.loss`: `often` is no share; write it as \"1%\", \"burst 0.2% 25%\", \"exact 3 7 8\" or \"none\"",
        ),
        ("repeats = 0", "line 1, column 11: `repeats`: 0 is out of range; it goes from 1 to 10000"),
        (
            "repeats = \"three\"",
            "line 1, column 11: `repeats`: `three` is not a whole number; write one from 1 to 10000",
        ),
        (
            "path.loss = \"120%\"",
            "line 1, column 13: `path.loss`: `120%` is more than all; write it as \"1%\", \"burst 0.2% 25%\", \"exact 3 7 8\" or \"none\"",
        ),
        (
            "[path]\nrtt = \"1ms\"\nrtt = \"2ms\"",
            "line 3, column 1: `rtt` is written twice; keep one of them",
        ),
        ("ipv6 = \"yes\"", "line 1, column 8: `ipv6`: write true or false, without quotes"),
    ] {
        assert_eq!(said(lines), error, "{lines}");
    }
    let broken = said("path = [\"a\"");
    assert!(broken.starts_with("line 2, column 1: "), "{broken}");
}

#[test]
fn a_variant_that_changes_nothing_was_meant_otherwise() {
    let said = |variant: &str, sets: &[&str]| {
        let text =
            format!("path.rtt = \"40ms\"\n{MINIMAL}[variants.same]\n{variant}\n[variants.b]\n");
        let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
        Scenario::read("x", &text, &sets).map(drop).map_err(|error| error.to_string())
    };
    let error = said("path.rtt = \"0.04s\"", &[]).expect_err("nothing changes");
    assert!(error.starts_with("line 4, column 11: the variant `same` changes nothing"), "{error}");
    assert_eq!(said("", &[]), Ok(()), "without keys it is the scenario as it is");
    assert_eq!(said("path.rtt = \"41ms\"", &[]), Ok(()));
    assert_eq!(said("path.rtt = \"41ms\"", &["path.rtt=7ms"]), Ok(()), "the user wants it so");
}

#[test]
fn what_an_application_ignores_is_an_error() {
    let said = |keys: &str| {
        let text = format!("[application]\n{keys}\n");
        Scenario::read("x", &text, &[]).expect_err(keys).to_string()
    };
    assert!(said("send = \"1MB\"\nrequest = \"78B\"").contains("means nothing to send"));
    assert!(said("download = \"1MB\"\npost = \"1MB\"").contains("does more than one thing"));
    assert!(said("download = \"1MB\"\nidle = \"1s\"").contains("needs `times`"));
    assert!(said("client = [\"drain\"]").contains("both ends"));
    assert!(
        said("client = [\"jump\"]\nserver = []")
            .starts_with("line 2, column 11: `jump` is no step")
    );
    assert!(said("").contains("does nothing"));
}

#[test]
fn an_override_that_is_wrong_is_quoted() {
    let error =
        |text: &str| Scenario::read("x", MINIMAL, &[text.to_owned()]).expect_err(text).to_string();
    assert_eq!(
        error("path.rat=5"),
        "in `--set path.rat=5`: `path` has no key `rat`; did you mean `rate`?"
    );
    assert_eq!(
        error("path.rtt"),
        "in `--set path.rtt`: there is no `=`; write it as `path.rtt=20ms`"
    );
}

#[test]
fn applications_together_have_no_more_than_one_may_have() {
    let two = |keys: &str| {
        let text = format!("[applications.a]\n{keys}\n[applications.b]\n{keys}\n");
        Scenario::read("test", &text, &[]).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(two("download = 1\nconnections = 50000"), Ok(()));
    let error = two("download = 1\nconnections = 50001").expect_err("too many");
    assert!(error.contains("open 100002 connections; at most 100000"), "{error}");
    assert_eq!(two("download = 1\ntimes = 800000"), Ok(()));
    let error = two("download = 1\ntimes = 1000000").expect_err("too many");
    assert!(error.contains("steps, with their repetitions; at most 10000000"), "{error}");
}

#[test]
fn changes_of_a_host_are_told_where_they_are_wrong() {
    let changes = |name: &str, changes: &str| {
        let text = format!("limit = \"30s\"\n{name}.changes = [{changes}]\n{MINIMAL}");
        Scenario::read("x", &text, &[]).expect_err(changes).to_string()
    };
    for (change, error) in [
        (
            "{ metrics = \"flush\" }",
            "line 2, column 19: `server.changes`: a change needs `at`, as `at = \"2s\"`",
        ),
        ("{ at = 2 }", "`server.changes.at`: 2 has no unit; write it as \"6ms\""),
        ("{ at = \"2s\" }", "`server.changes`: nothing changes at 2s; write `sysctl.net.ipv4.NAME"),
        (
            "{ at = \"1min\", metrics = \"flush\" }",
            "`server.changes`: a change at 1min comes after the limit of 30s; raise `limit`",
        ),
        (
            "{ at = \"2s\", metrics = \"flush\" }, { at = \"1s\", metrics = \"flush\" }",
            "`server.changes`: a change at 1s cannot follow one at 2s; write them in order of `at`",
        ),
        (
            "{ at = \"2s\", metrics = \"forget\" }",
            "`server.changes.metrics`: `forget` is no action; write \"flush\"",
        ),
        (
            "{ at = \"2s\", route.initcwnd = 30 }",
            "`server.changes`: `route` stays as it is while a run goes on; what changes is `sysctl` and `metrics`",
        ),
        (
            "{ at = \"2s\", sysctls = 1 }",
            "`server.changes` has no key `sysctls`; did you mean `sysctl`?",
        ),
        (
            "{ at = \"2s\", sysctl.kernel.panic = 1 }",
            "`server.changes.sysctl.kernel.panic` cannot be set: only names below `net.` belong",
        ),
        (
            "{ at = \"2s\", sysctl.net.ipv4.tcp_mem = 1 }",
            "`server.changes.sysctl.net.ipv4.tcp_mem` holds for the whole machine",
        ),
    ] {
        let said = changes("server", change);
        assert!(said.contains(error), "{change}: {said}");
    }
    let said = changes("client", "{ metrics = \"flush\" }");
    assert!(said.contains("`client.changes`"), "{said}");
    let said = super::said("client.changes.at = \"2s\"");
    assert!(said.contains("`client.changes` is a list: write it in brackets"), "{said}");
}

#[test]
fn looks_at_sockets_and_what_stays_open_are_told_where_they_are_wrong() {
    let said = |text: &str| Scenario::read("x", text, &[]).expect_err(text).to_string();
    for (lines, error) in [
        ("records.sockets = \"1s\"", "`records.sockets` is a list: write it in brackets"),
        ("records.sockets = [1]", "`records.sockets`: write times, as [\"1s\", \"4s\"]"),
        (
            "records.sockets = [\"2s\", \"1s\"]",
            "line 1, column 26: `records.sockets`: a look at 1s cannot follow one at 2s; write them in order, each once",
        ),
        (
            "records.sockets = [\"3min\"]",
            "`records.sockets`: a look at 3min comes after the limit of 2min; raise `limit`",
        ),
        ("expect.sockets.server.close-wait = 3", "needs looks: write `records.sockets`"),
        ("expect.checked.server = [\"CLOSE_WAIT\"]", "`expect.checked` needs looks"),
        ("expect.checked.server = \"CLOSE_WAIT\"", "write it as `server = [\"CLOSE_WAIT\"]`"),
        ("expect.failed = \"some\"", "`expect.failed`: write it as 3"),
    ] {
        let said = said(&format!("{lines}\n{MINIMAL}"));
        assert!(said.contains(error), "{lines}: {said}");
    }
    let looks = "records.sockets = [\"1s\", \"2s\"]\n";
    for (lines, error) in [
        ("sockets.web.close-wait = 1", "there is no host `web`"),
        (
            "sockets.server.CLOSE_WAIT = 1",
            "a socket has no state `CLOSE_WAIT`; did you mean `close-wait`?",
        ),
        ("sockets.server.close-wait = []", "an empty list expects nothing"),
        ("sockets.server.close-wait = [1, 2, 3]", "there are 3 amounts and 2 looks"),
        ("sockets.server.close-wait = { recvq = 1 }", "has no key `recvq`; did you mean `recv_q`?"),
        ("sockets.server.close-wait = true", "`expect.sockets.server.close-wait`: write it as 3"),
    ] {
        let said = said(&format!("{looks}expect.{lines}\n{MINIMAL}"));
        assert!(said.contains(error), "{lines}: {said}");
    }
    let steps =
        |client: &str| said(&format!("[application]\nclient = {client}\nserver = [\"drain\"]\n"));
    let last = "`keep open` is the last step of an end";
    assert!(
        steps("[\"keep open\", \"drain\"]")
            .starts_with("line 2, column 11: `keep open` is the last")
    );
    assert!(steps("[{ repeat = 2, steps = [\"keep open\"] }]").contains(last));
    assert!(steps("[\"keep open\"]").contains("needs `records.sockets`"));
}
