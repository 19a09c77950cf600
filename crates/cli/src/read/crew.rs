//! Who does what of a capture's analysis, on how many threads?
//!
//! ```text
//! packets that go on:   reading thread, follows connections --parts--> board --> analysts, one a thread
//! packets all over:     reading thread --batches--> board --> whoever follows --parts--> board --> analysts
//!                             \__ while enough waits, it does of that what it may
//! ```
//!
//! Packets come in one order, and are followed in it by one thread at a time. Where few connections carry most
//! of them, that is quicker than to write down what was read of each, and the reading thread does it. Where most have to be
//! looked for, it takes longer than reading, and another does it meanwhile. The
//! analysis is cut into parts that any thread may take ([`Board`]). What comes out does not depend on who
//! took what ([`tcpwhy::tracker::Analyst`]). Threads begin when there is a second job for them: small captures
//! need none.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tcpwhy::capture::CaptureError;
use tcpwhy::report::Report;
use tcpwhy::session::Intake;
use tcpwhy::tracker::{self, Analyst, Batch, Config, Tracker};

use super::board::{Board, Follower, Task, WAITING};

/// Analysts that there may be. Ours: more than one reading thread can feed.
const MOST: usize = 64;
/// Bytes of the capture that go into a batch, and batches that wait before the reading thread lends a hand. Ours: for
/// 100,000 connections of ten packets on two cores, 64 KiB and four of them differed by no more than runs do.
const BATCH: usize = 128 << 10;
const BATCHES: usize = 2;
/// Of this many packets of a chunk more than one had to be looked for: then another follows the next. Ours: the share
/// itself was not varied.
const SCATTERED: u64 = 2;

/// The analysts, the reading thread among them.
pub(super) struct Crew {
    shared: Arc<Shared>,
    /// `None` until there is a second job for them.
    threads: Option<Vec<JoinHandle<()>>>,
    /// `None` while others follow the connections.
    follower: Option<Box<Follower>>,
    /// What they will follow next, of so many bytes.
    batch: Batch,
    batch_bytes: usize,
}

struct Shared {
    board: Mutex<Board>,
    /// There is something to do, or nothing will be.
    job: Condvar,
    /// A task was done.
    done: Condvar,
    /// The first is the reading thread's.
    analysts: Vec<Mutex<Analyst>>,
}

impl Crew {
    /// A crew of so many analysts, [`MOST`] at most.
    pub(super) fn new(config: Config, analysts: usize) -> Self {
        let analysts = (0..analysts.clamp(1, MOST)).map(|_| Mutex::new(Analyst::new(config.keep)));
        let shared = Shared {
            board: Mutex::default(),
            job: Condvar::new(),
            done: Condvar::new(),
            analysts: analysts.collect(),
        };
        let follower = Some(Box::new(Follower::new(Tracker::handing_on(config))));
        let (batch, batch_bytes) = (Batch::default(), 0);
        Self { shared: Arc::new(shared), threads: None, follower, batch, batch_bytes }
    }

    /// Takes the next bytes of the capture that `intake` reads.
    pub(super) fn push(&mut self, intake: &mut Intake, bytes: &[u8]) -> Result<(), CaptureError> {
        let Some(follower) = &mut self.follower else {
            let pushed = intake.push_ahead(bytes, &mut self.batch);
            self.batch_bytes += bytes.len();
            if self.batch_bytes >= BATCH {
                self.post_batch();
            }
            return pushed;
        };
        let before = (intake.packets(), follower.tracker.looked_for());
        let pushed = intake.push(bytes, &mut follower.tracker);
        let packets = intake.packets() - before.0;
        let is_scattered = (follower.tracker.looked_for() - before.1) * SCATTERED > packets;
        self.post_parts();
        if is_scattered && self.threads.as_ref().is_some_and(|threads| !threads.is_empty()) {
            lock(&self.shared.board).follower = self.follower.take();
        }
        pushed
    }

    /// Ends the capture that `intake` reads; any damage stands there.
    pub(super) fn end(&mut self, intake: &mut Intake) {
        let _ = intake.end(&mut self.own_follower().tracker);
        self.post_parts();
    }

    /// The report over all that `intake` has read.
    pub(super) fn finish(mut self, intake: Intake) -> Report {
        while self.own_follower().tracker.close_some() {
            self.post_parts();
        }
        self.catch_up();
        self.dismiss();
        let idle = Follower::new(Tracker::handing_on(Config::default()));
        let tracker = mem::replace(self.own_follower(), idle).tracker;
        let all = self.shared.analysts.iter();
        let all = all.map(|one| mem::replace(&mut *lock(one), Analyst::new(None)));
        intake.finish(tracker.finish_with(all))
    }

    /// What is known so far of what `intake` has read.
    pub(super) fn provisional(&mut self, intake: &Intake) -> Report {
        self.catch_up();
        let standing = self.own_follower().tracker.standing();
        let board = lock(&self.shared.board);
        let begun = |number| board.long.get(&number).and_then(|long| long.begun.as_ref());
        let standing = standing.into_iter().map(|part| {
            let begun = begun(part.connection());
            part.account(begun)
        });
        let ended = self.shared.analysts.iter().map(|one| lock(one).so_far());
        intake.provisional(tracker::together(ended, standing))
    }

    /// The follower, once all batches are followed.
    fn own_follower(&mut self) -> &mut Follower {
        if !self.batch.is_empty() {
            self.post_batch();
        }
        let Self { shared, follower, .. } = self;
        follower.get_or_insert_with(|| shared.follower_back())
    }

    /// Waits until all is analysed that was taken.
    fn catch_up(&mut self) {
        self.own_follower().end_short();
        self.post_parts();
        let mut board = lock(&self.shared.board);
        while board.waiting + board.running > 0 && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        give_up_if_mistaken(board);
    }

    /// Puts up what the reading thread has gathered following connections; lends a hand while too much is there.
    fn post_parts(&mut self) {
        let Some(follower) = &mut self.follower else { return };
        if !follower.sort() {
            return;
        }
        let mut board = lock(&self.shared.board);
        let jobs = board.exchange(follower).min(board.idle);
        (0..jobs).for_each(|_| self.shared.job.notify_one());
        if self.threads.is_none() && board.ready.len() > 1 {
            // Where the system refuses one, those there are do the work: it takes longer.
            let begun = (1..self.shared.analysts.len()).map_while(|number| {
                let shared = Arc::clone(&self.shared);
                thread::Builder::new().spawn(move || shared.work(number)).ok()
            });
            self.threads = Some(begun.collect());
        }
        while board.waiting > WAITING && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        give_up_if_mistaken(board);
        follower.reuse();
    }

    /// Puts up segments to be followed; lends a hand while too much is there.
    fn post_batch(&mut self) {
        self.batch_bytes = 0;
        let mut board = lock(&self.shared.board);
        let room = board.room.pop().unwrap_or_default();
        board.batches.push_back(mem::replace(&mut self.batch, room));
        if board.idle > 0 {
            self.shared.job.notify_one();
        }
        let is_too_much = |board: &Board| board.batches.len() > BATCHES || board.waiting > WAITING;
        while is_too_much(&board) && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        let is_steady = mem::take(&mut board.is_steady);
        give_up_if_mistaken(board);
        if is_steady {
            self.own_follower();
        }
    }

    /// Ends the threads.
    fn dismiss(&mut self) {
        lock(&self.shared.board).is_over = true;
        self.shared.job.notify_all();
        for thread in self.threads.take().into_iter().flatten() {
            // What a panic carried stands on the board.
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
            board = if let Some(task) = board.next(false) {
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
        if let Some(task) = board.next(true) {
            self.carry_out(board, task, 0)
        } else {
            board.is_awaited = true;
            self.done.wait(board).unwrap_or_else(PoisonError::into_inner)
        }
    }

    /// Waits until all batches are followed, and takes the follower.
    fn follower_back(&self) -> Box<Follower> {
        let mut board = lock(&self.board);
        loop {
            if board.batches.is_empty()
                && let Some(follower) = board.follower.take()
            {
                return follower;
            }
            if board.mistake.is_some() {
                give_up_if_mistaken(board);
                board = lock(&self.board);
            }
            board = self.lend_a_hand(board);
        }
    }

    fn carry_out<'a>(
        &'a self,
        board: MutexGuard<'a, Board>,
        mut task: Task,
        number: usize,
    ) -> MutexGuard<'a, Board> {
        drop(board);
        let done =
            catch_unwind(AssertUnwindSafe(|| task.carry_out(&mut lock(&self.analysts[number]))));
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

/// Goes on with an analyst's panic, of which its own thread has told.
fn give_up_if_mistaken(mut board: MutexGuard<'_, Board>) {
    if let Some(mistake) = board.mistake.take() {
        drop(board);
        resume_unwind(mistake);
    }
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
    fn a_mistake_of_whoever_follows_is_everybody_s_though_the_follower_is_lost() {
        let mut crew = Crew::new(Config::default(), 2);
        crew.follower = None;
        let mut board = lock(&crew.shared.board);
        board.mistake = Some(Box::new("a mistake made for a test"));
        drop(board);
        let posted = catch_unwind(AssertUnwindSafe(|| crew.post_batch()));
        let said = posted.expect_err("it goes on as a panic");
        assert_eq!(said.downcast_ref(), Some(&"a mistake made for a test"));
    }

    /// A classic capture of so many SYNs of different clients.
    fn syns(from: u32, count: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in from..from + count {
            let mut frame = vec![2; 12];
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 7, 0x40, 0, 64, 6, 0, 0]);
            frame.extend((0x0a00_0000 + number).to_be_bytes());
            frame.extend([198, 51, 100, 2, 0x9c, 0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0]);
            frame.extend([0x50, 2, 1, 2, 0, 0, 0, 0]);
            let length = frame.len() as u32;
            for word in [number / 1000, number % 1000, length, length] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        bytes
    }

    #[test]
    fn packets_all_over_are_followed_by_others_once_there_are_some() {
        let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
        header.extend([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0]);
        let (mut crew, mut intake) = (Crew::new(Config::default(), 2), Intake::new());
        intake.begin("flood");
        crew.push(&mut intake, &header).expect("it is sound");
        crew.push(&mut intake, &syns(0, 1000)).expect("it is sound");
        assert!(crew.follower.is_some(), "there is nobody yet");
        crew.threads = Some(vec![thread::spawn(|| {})]);
        crew.push(&mut intake, &syns(1000, 1000)).expect("it is sound");
        assert!(crew.follower.is_none());
        // Nobody else does it here: the reading thread takes it up itself.
        for turn in 2..12 {
            crew.push(&mut intake, &syns(turn * 1000, 1000)).expect("it is sound");
        }
        crew.end(&mut intake);
        assert!(crew.follower.is_some());
        let report = crew.finish(intake);
        assert_eq!((report.captures[0].packets, report.totals.connections), (12_000, 12_000));
    }
}
