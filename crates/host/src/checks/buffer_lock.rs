//! What helps where a program set the size of a socket's buffer.

use super::words;
use crate::finding::Fix;
use crate::seen::Seen;

/// To leave `option` out, and where the kernel cut what was asked for, to raise its bound `key` to `enough`.
pub(super) fn fixes(seen: &Seen<'_>, option: &str, key: &str, enough: Option<i64>) -> Vec<Fix> {
    let without = words::advise(
        format!("remove {option} from the program or its configuration: autotuning does better"),
        "",
    );
    let raised = enough.map(|enough| {
        words::set(
            seen,
            key,
            &enough,
            "let the program have as much as it asks for, where that cannot be removed",
            "for sockets that ask for a size afterwards: restart the program",
            "more memory for each such socket; it may ask for less than that anyway",
        )
    });
    [without].into_iter().chain(raised).collect()
}
