//! What is in a folder of tables, for the tests of tables and of the program.

use std::fs;
use std::path::Path;

/// Files of a folder, by their path in it, in order.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("inside");
                found.push(name.to_str().expect("text").to_owned());
            }
        }
    }
    found.sort();
    found
}
