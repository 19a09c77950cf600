//! Who does what of a capture's analysis, on how many threads?
//!
//! ```text
//! packets that go on:   reading thread, follows connections --parts--> board --> analysts, one a thread
//! packets all over:     reading thread --a batch for each lane--> board --> who follows the lane, and analyses
//!                             \__ follows lanes itself while enough waits
//! ```
//!
//! Packets of a connection are followed in their order, by one thread at a time. Where few connections carry most
//! of them, the reading thread follows all, for that is quicker than to write down what was read of each; only the
//! analysis is cut into parts that any thread may take ([`Board`]). Where most have to be looked for, following
//! takes longer than reading: then connections are divided into lanes ([`super::lanes`]). What comes out does not
//! depend on who took what ([`tcpwhy::tracker::Analyst`]). Threads begin when there is a second job for them: small captures
//! need none.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tcpwhy::capture::CaptureError;
use tcpwhy::report::Report;
use tcpwhy::session::Intake;
use tcpwhy::tracker::{Analyst, Batches, Bench, Config, Tracker};

use super::board::{Board, Follower, Long, Task, WAITING};

/// Analysts that there may be. Ours: more than one reading thread can feed.
const MOST: usize = 64;
/// Bytes of the capture whose segments are put up at once, and batches that wait before the reading
/// thread lends a hand. Ours: for 100,000 connections of ten packets on two cores 256 KiB and 8 took as long as 16 batches
/// or 512 KiB, to 2 %; more cores were not tried.
const BATCH: usize = 256 << 10;
const BATCHES: usize = 8;
/// Of this many packets of a chunk more than one had to be looked for: then they are divided into
/// lanes. Ours: the share itself was not varied.
const SCATTERED: u64 = 2;
/// Packets of a capture before it is worth other threads. Ours: a quarter of a millisecond's work of one.
const ENOUGH: u64 = 1024;

/// The analysts, the reading thread among them.
pub(super) struct Crew {
    shared: Arc<Shared>,
    /// `None` until there is a second job for them.
    threads: Option<Vec<JoinHandle<()>>>,
    /// Follows the connections while there are no lanes.
    follower: Follower,
    /// What will be followed next in lanes, of this many bytes; `None` while there are none.
    batches: Option<Batches>,
    bytes: usize,
}

struct Shared {
    board: Mutex<Board>,
    /// There is something to do, or nothing will be.
    job: Condvar,
    /// A task was done.
    done: Condvar,
    /// The first is the reading thread's.
    benches: Vec<Mutex<Bench>>,
}

impl Crew {
    /// A crew of this many analysts, [`MOST`] at most.
    pub(super) fn new(config: Config, analysts: usize) -> Self {
        let bench = || Mutex::new(Bench::of(Analyst::new(config.keep)));
        let shared = Shared {
            board: Mutex::default(),
            job: Condvar::new(),
            done: Condvar::new(),
            benches: (0..analysts.clamp(1, MOST)).map(|_| bench()).collect(),
        };
        let follower = Follower::new(Tracker::handing_on(config));
        let shared = Arc::new(shared);
        Self { shared, threads: None, follower, batches: None, bytes: 0 }
    }

    /// Takes the next bytes of the capture that `intake` reads.
    pub(super) fn push(&mut self, intake: &mut Intake, bytes: &[u8]) -> Result<(), CaptureError> {
        if let Some(batches) = &mut self.batches {
            let pushed = intake.push_ahead(bytes, batches);
            self.bytes += bytes.len();
            if self.bytes >= BATCH && self.post_batches() {
                self.rejoin();
            }
            return pushed;
        }
        let tracker = &mut self.follower.tracker;
        let before = (intake.packets(), tracker.looked_for());
        let pushed = intake.push(bytes, tracker);
        let packets = intake.packets() - before.0;
        let is_scattered = (tracker.looked_for() - before.1) * SCATTERED > packets;
        let may_part = is_scattered && tracker.may_part() && intake.packets() >= ENOUGH;
        self.post_parts();
        if may_part && !call(&mut self.threads, &self.shared).is_empty() {
            self.part();
        }
        pushed
    }

    /// Ends the capture that `intake` reads; any damage is there.
    pub(super) fn end(&mut self, intake: &mut Intake) {
        self.rejoin();
        let _ = intake.end(&mut self.follower.tracker);
        self.post_parts();
    }

    /// The report over all that `intake` has read.
    pub(super) fn finish(mut self, intake: Intake) -> Report {
        self.rejoin();
        while self.follower.tracker.close_some() {
            self.post_parts();
        }
        self.catch_up();
        self.dismiss();
        let idle = Follower::new(Tracker::handing_on(Config::default()));
        let tracker = mem::replace(&mut self.follower, idle).tracker;
        let benches = self.shared.benches.iter();
        let analysts = benches.filter_map(|bench| mem::take(&mut *lock(bench)).into_analyst());
        intake.finish(tracker.finish_with(analysts))
    }

    /// What is known so far of what `intake` has read.
    pub(super) fn provisional(&mut self, intake: &Intake) -> Report {
        self.rejoin();
        self.catch_up();
        let tracker = &self.follower.tracker;
        let standing = tracker.standing();
        let board = lock(&self.shared.board);
        let begun = |number| board.long.get(&number).and_then(|long| long.begun.as_ref());
        let standing = standing.into_iter().map(|part| {
            let begun = begun(part.connection());
            part.account(begun)
        });
        let benches = self.shared.benches.iter();
        let ended = benches.filter_map(|bench| lock(bench).analyst().map(Analyst::so_far));
        intake.provisional(tracker.together(ended, standing))
    }

    /// Divides the connections into lanes.
    fn part(&mut self) {
        self.catch_up();
        let mut board = lock(&self.shared.board);
        let Board { lanes, long, .. } = &mut *board;
        let begun = |id| long.remove(&id).and_then(|long| long.begun);
        lanes.begin(&mut self.follower.tracker, begun);
        self.batches = Some(Batches::default());
    }

    /// Follows all connections again, once all batches are followed.
    fn rejoin(&mut self) {
        self.post_batches();
        if self.batches.take().is_none() {
            return;
        }
        let mut board = self.shared.all_done(lock(&self.shared.board));
        let Board { lanes, long, .. } = &mut *board;
        let begun = lanes.end(&mut self.follower.tracker).into_iter();
        long.extend(begun.map(|(id, begun)| (id, Long::of(begun))));
    }

    /// Waits until all is analysed that was taken.
    fn catch_up(&mut self) {
        self.follower.end_short();
        self.post_parts();
        drop(self.shared.all_done(lock(&self.shared.board)));
    }

    /// Puts up what the reading thread has gathered following connections; lends a hand while too much is there.
    fn post_parts(&mut self) {
        let follower = &mut self.follower;
        if !follower.sort() {
            return;
        }
        let mut board = lock(&self.shared.board);
        let jobs = board.exchange(follower).min(board.idle);
        (0..jobs).for_each(|_| self.shared.job.notify_one());
        if board.ready.len() > 1 {
            call(&mut self.threads, &self.shared);
        }
        while board.waiting > WAITING && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        drop(unless_mistaken(board));
        follower.reuse();
    }

    /// Puts up segments to be followed; lends a hand while too much is there. Whether following takes no longer than
    /// reading any more.
    fn post_batches(&mut self) -> bool {
        let Some(batches) = &mut self.batches else { return false };
        self.bytes = 0;
        let mut board = lock(&self.shared.board);
        let posted = board.lanes.put(batches).min(board.idle);
        (0..posted).for_each(|_| self.shared.job.notify_one());
        while board.lanes.waiting > BATCHES && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        let is_steady = board.lanes.are_steady();
        drop(unless_mistaken(board));
        is_steady
    }

    /// Ends the threads.
    fn dismiss(&mut self) {
        lock(&self.shared.board).is_over = true;
        self.shared.job.notify_all();
        for thread in self.threads.take().into_iter().flatten() {
            // What a panic carried is on the board.
            let _ = thread.join();
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Shared {
    /// Does tasks until there will be none any more.
    fn work(&self, number: usize) {
        let mut board = lock(&self.board);
        while !board.is_over {
            board = if let Some(task) = board.next(number) {
                self.carry_out(board, task, number)
            } else {
                board.idle += 1;
                let mut board = self.job.wait(board).unwrap_or_else(PoisonError::into_inner);
                board.idle -= 1;
                board
            };
        }
    }

    /// Does a task on the reading thread, or waits until one is done.
    fn lend_a_hand<'a>(&'a self, mut board: MutexGuard<'a, Board>) -> MutexGuard<'a, Board> {
        if let Some(task) = board.next(0) {
            self.carry_out(board, task, 0)
        } else {
            board.is_awaited = true;
            self.done.wait(board).unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Waits until all is done that was put up, and lends a hand.
    fn all_done<'a>(&'a self, mut board: MutexGuard<'a, Board>) -> MutexGuard<'a, Board> {
        while board.waiting + board.lanes.waiting + board.running > 0 && board.mistake.is_none() {
            board = self.lend_a_hand(board);
        }
        unless_mistaken(board)
    }

    fn carry_out<'a>(
        &'a self,
        board: MutexGuard<'a, Board>,
        mut task: Task,
        number: usize,
    ) -> MutexGuard<'a, Board> {
        drop(board);
        let done =
            catch_unwind(AssertUnwindSafe(|| task.carry_out(&mut lock(&self.benches[number]))));
        let mut board = lock(&self.board);
        board.running -= 1;
        match done {
            Ok(()) => board.put_back(task),
            Err(mistake) => board.mistake = Some(mistake),
        }
        if board.idle > 0 && board.has_work() {
            self.job.notify_one();
        }
        if mem::take(&mut board.is_awaited) {
            self.done.notify_one();
        }
        board
    }
}

/// The threads, which begin now if they have not.
fn call<'a>(
    threads: &'a mut Option<Vec<JoinHandle<()>>>,
    shared: &Arc<Shared>,
) -> &'a [JoinHandle<()>] {
    threads.get_or_insert_with(|| {
        // Where the system refuses one, those there are do the work: it takes longer.
        let begun = (1..shared.benches.len()).map_while(|number| {
            let shared = Arc::clone(shared);
            thread::Builder::new().spawn(move || shared.work(number)).ok()
        });
        begun.collect()
    })
}

/// Goes on with an analyst's panic. The analyst's own thread has reported it.
fn unless_mistaken(mut board: MutexGuard<'_, Board>) -> MutexGuard<'_, Board> {
    if let Some(mistake) = board.mistake.take() {
        drop(board);
        resume_unwind(mistake);
    }
    board
}

/// What a panic of somebody else left is not used any more: all end with it.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_analyst_s_mistake_is_everybody_s_and_nobody_waits_for_it() {
        let mut crew = Crew::new(Config::default(), 3);
        // What was begun when it happened never comes back.
        let mut board = lock(&crew.shared.board);
        board.running = 1;
        board.mistake = Some(Box::new("a mistake made for a test"));
        drop(board);
        let ended = catch_unwind(AssertUnwindSafe(|| crew.catch_up()));
        let said = ended.expect_err("it goes on as a panic");
        assert_eq!(said.downcast_ref(), Some(&"a mistake made for a test"));
    }

    #[test]
    fn a_mistake_of_whoever_follows_is_everybody_s_though_the_lane_is_lost() {
        let mut crew = Crew::new(Config::default(), 2);
        crew.part();
        let mut board = lock(&crew.shared.board);
        board.mistake = Some(Box::new("a mistake made for a test"));
        drop(board);
        let posted = catch_unwind(AssertUnwindSafe(|| crew.post_batches()));
        let said = posted.expect_err("it goes on as a panic");
        assert_eq!(said.downcast_ref(), Some(&"a mistake made for a test"));
    }

    /// A classic capture of this many requests of different clients, of 4 bytes each.
    fn requests(from: u32, count: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in from..from + count {
            let mut frame = vec![2; 12];
            frame.extend([8, 0, 0x45, 0, 0, 44, 0, 7, 0x40, 0, 64, 6, 0, 0]);
            frame.extend((0x0a00_0000 + number).to_be_bytes());
            frame.extend([198, 51, 100, 2, 0x9c, 0x40, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8]);
            frame.extend([0x50, 0x18, 1, 2, 0, 0, 0, 0, b'G', b'E', b'T', b' ']);
            let length = frame.len() as u32;
            for word in [number / 1000, number % 1000, length, length] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        bytes
    }

    #[test]
    fn packets_all_over_are_followed_in_lanes_and_steady_ones_are_not() {
        let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        header.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        let (mut crew, mut intake) = (Crew::new(Config::default(), 2), Intake::new());
        // Nobody else does it here: the reading thread takes it all up itself.
        crew.threads = Some(vec![thread::spawn(|| {})]);
        intake.begin("many clients");
        crew.push(&mut intake, &header).expect("it is sound");
        crew.push(&mut intake, &requests(0, 1000)).expect("it is sound");
        assert!(crew.batches.is_none(), "too few to be worth it");
        for turn in 1..16 {
            crew.push(&mut intake, &requests(turn * 1000, 1000)).expect("it is sound");
            assert!(crew.batches.is_some());
        }
        crew.rejoin();
        assert!(crew.batches.is_none());
        crew.push(&mut intake, &requests(16_000, 1000)).expect("it is sound");
        assert!(crew.batches.is_some(), "they are divided again");
        crew.end(&mut intake);
        assert!(crew.batches.is_none());
        let report = crew.finish(intake);
        assert_eq!((report.captures[0].packets, report.totals.connections), (17_000, 17_000));
    }
}
