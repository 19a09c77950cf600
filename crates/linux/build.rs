//! Stamps the lab's program with its sources, so that a copy built from others is noticed; and puts that program into
//! one that is given away (`TCPWHY_AGENT` names the file).

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    // With fixed keys and relative names, so that every build of the same sources has one stamp.
    let mut hasher = DefaultHasher::new();
    // Of the model the lab's program uses the plan alone.
    for folder in [own.join("src"), own.join("../model/src/scenario")] {
        println!("cargo::rerun-if-changed={}", folder.display());
        let mut files = BTreeSet::new();
        if folder.is_dir() {
            gather(&folder, &mut files)?;
        }
        // What watches a live host is no part of that program.
        files.retain(|file| !file.starts_with(own.join("src/live")));
        for file in files {
            file.strip_prefix(&folder).unwrap_or(&file).hash(&mut hasher);
            fs::read(&file)?.hash(&mut hasher);
        }
    }
    println!("cargo::rustc-env=TCPWHY_LAB_STAMP={:016x}", hasher.finish());
    carry();
    Ok(())
}

fn carry() {
    println!("cargo::rerun-if-env-changed=TCPWHY_AGENT");
    println!("cargo::rustc-check-cfg=cfg(carries_agent)");
    let Some(file) = env::var_os("TCPWHY_AGENT").filter(|file| !file.is_empty()) else { return };
    let file = PathBuf::from(file);
    println!("cargo::rerun-if-changed={}", file.display());
    println!("cargo::rustc-env=TCPWHY_AGENT_FILE={}", file.display());
    println!("cargo::rustc-cfg=carries_agent");
}

fn gather(folder: &Path, files: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.insert(path);
        }
    }
    Ok(())
}
