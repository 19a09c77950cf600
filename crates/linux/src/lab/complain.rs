//! How the guest's program tells what goes wrong.

#[expect(clippy::print_stderr, reason = "the program's way to tell")]
pub(super) fn complain(sentence: &str) {
    eprintln!("tcpwhy-agent: {sentence}");
}
