//! Slips that users make in a scenario, and all that is printed about each: file, line, column, what is
//! wrong, what to write. Reviewed as `wrong/said.txt`.

mod common;

use std::fmt::Write as _;
use std::fs;

use common::{in_repository, run};

#[test]
fn what_is_said_of_wrong_scenarios() {
    let folder = in_repository("crates/cli/tests/wrong");
    let entries = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("one").path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension() == Some("toml".as_ref())).collect();
    files.sort();
    let mut said = String::new();
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        let path = file.to_str().expect("UTF-8");
        let words = ["lab", "run", path, "--backend", "uml:6.1"];
        let told = run(&words);
        // Unreadable, or refused by the backend.
        assert!(matches!(told.status, Some(2 | 3)) && told.stdout.is_empty(), "{name}: {told:?}");
        let _ = write!(said, "{}", told.stderr.replace(path, name));
    }
    let reviewed = fs::read_to_string(folder.join("said.txt")).unwrap_or_default();
    assert!(said == reviewed, "it says now:\n{said}");
}
