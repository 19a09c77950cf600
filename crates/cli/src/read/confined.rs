//! Captures are hostile: they are read in a thread that reads the files it was given, writes and runs nothing, and
//! connects to nobody, where the kernel has Landlock. What is printed, and the pager, are the caller's.

use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use tcpwhy_linux::live::confine;

use super::Input;

/// Carries out `work`, with all threads that it starts, confined to `inputs`.
///
/// # Panics
/// `work` did.
pub fn confined<T: Send>(inputs: &[Input], work: impl FnOnce() -> T + Send) -> T {
    let files = inputs.iter().filter_map(|input| match input {
        Input::File(path) => Some(path.clone()),
        Input::Stdin => None,
    });
    // How many threads a container may have.
    let around = ["/proc/self", "/proc/thread-self", "/sys/fs/cgroup"].map(PathBuf::from);
    let allowed: Vec<PathBuf> = files.chain(around).collect();
    let work = Mutex::new(Some(work));
    let take = || work.lock().ok().and_then(|mut work| work.take());
    let inside = || {
        let allowed: Vec<&Path> = allowed.iter().map(PathBuf::as_path).collect();
        // Without it reading goes on: the code that reads is safe without it, too.
        let _ = confine(&allowed);
        take().map(|work| work())
    };
    let done = thread::scope(|scope| {
        let reader = thread::Builder::new().name("reader".to_owned()).stack_size(STACK);
        match reader.spawn_scoped(scope, inside) {
            Ok(reader) => reader.join().unwrap_or_else(|panic| panic::resume_unwind(panic)),
            // Where no thread is left, it is read here, and not confined.
            Err(_) => take().map(|work| work()),
        }
    });
    done.expect("work is taken once")
}

/// As the main thread's, usually.
const STACK: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn what_reads_captures_reads_its_own_and_writes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
        for file in [&own, &other] {
            fs::write(file, "x").expect("room");
        }
        let kind = |done: std::io::Result<()>| done.err().map(|error| error.kind());
        let [read, strange, written] = confined(&[Input::File(own.clone()), Input::Stdin], || {
            let within = thread::scope(|scope| {
                scope.spawn(|| fs::read(&other).map(drop)).join().expect("no panic")
            });
            [fs::read(&own).map(drop), within, fs::write(&own, "y")].map(kind)
        });
        assert_eq!(read, None);
        let has_landlock = Path::new("/sys/kernel/security/landlock").exists()
            || fs::read_to_string("/sys/kernel/security/lsm")
                .is_ok_and(|all| all.contains("landlock"));
        if has_landlock {
            assert_eq!([strange, written], [Some(ErrorKind::PermissionDenied); 2]);
        }
        assert_eq!(kind(fs::write(&other, "y")), None, "the caller is free");
    }
}
