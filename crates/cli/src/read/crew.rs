//! Who analyses what the reading thread gathers, on how many threads?
//!
//! ```text
//! reading thread --parts of connections--> board --> analysts, one a thread
//!       \__ while enough of them wait, it is an analyst itself
//! ```
//!
//! Reading and following connections is one thread's work, for packets come in one order. The
//! larger half, the analysis, is cut into parts that any thread may take: a connection that came in
//! one part with others like it, one in several parts a part at a time and in order, with what the
//! part before it left. What comes out does not depend on who took what
//! ([`tcpwhy::tracker::Analyst`]). Threads begin when there is a second job for them: small captures
//! need none.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tcpwhy::report::Report;
use tcpwhy::session::Session;
use tcpwhy::tracker::{Analyst, Begun, Config, Part};

/// Analysts that there may be. Ours: more than one reading thread can feed.
const MOST: usize = 64;
/// Jobs that wait before the reading thread lends a hand. Ours: 1.8 MB of events that wait.
const WAITING: usize = 8;
/// Short connections of one job, and packets after which it is enough. Ours: for 100,000 of ten packets on two
/// cores, 256 at a time wake threads a quarter as often as 32, and take 0.23 s instead of 0.24 s.
const BATCH: usize = 256;
const BATCH_PACKETS: usize = 4096;

/// The analysts, the reading thread among them.
pub(super) struct Crew {
    shared: Arc<Shared>,
    /// `None` until there is a second job for them.
    threads: Option<Vec<JoinHandle<()>>>,
    /// Short connections of the next job.
    batch: Vec<Part>,
    batch_packets: usize,
}

struct Shared {
    board: Mutex<Board>,
    /// There is a job, or there will be none.
    job: Condvar,
    /// A job was done.
    done: Condvar,
    /// The first is the reading thread's.
    analysts: Vec<Mutex<Analyst>>,
}

/// What is to be done.
#[derive(Default)]
struct Board {
    ready: VecDeque<Job>,
    /// Connections in several parts.
    long: HashMap<u64, Long>,
    /// Parts of those and other jobs that nobody has begun.
    waiting: usize,
    running: usize,
    /// Parts that were analysed, for their room.
    spent: Vec<Part>,
    is_over: bool,
    /// What an analyst's panic carried.
    mistake: Option<Box<dyn Any + Send>>,
}

/// A connection in several parts, of which one is analysed at a time.
#[derive(Default)]
struct Long {
    parts: VecDeque<Part>,
    begun: Option<Begun>,
    is_taken: bool,
}

enum Job {
    /// Connections in one part each.
    Whole(Vec<Part>),
    /// The next part of this connection.
    Next(u64),
}

/// A job with all that it takes.
enum Task {
    Whole(Vec<Part>),
    Next(Part, Option<Begun>),
}

impl Board {
    /// Puts up a part of a connection in several.
    fn put(&mut self, part: Part) {
        let number = part.connection();
        let long = self.long.entry(number).or_default();
        if long.parts.is_empty() && !long.is_taken {
            self.ready.push_back(Job::Next(number));
        }
        long.parts.push_back(part);
        self.waiting += 1;
    }

    /// The next task, which is begun.
    fn next(&mut self) -> Option<Task> {
        let task = match self.ready.pop_front()? {
            Job::Whole(parts) => Task::Whole(parts),
            Job::Next(number) => {
                let long = self.long.get_mut(&number)?;
                long.is_taken = true;
                Task::Next(long.parts.pop_front()?, long.begun.take())
            }
        };
        self.waiting -= 1;
        self.running += 1;
        Some(task)
    }

    /// Takes back what a task was done with.
    fn put_back(&mut self, task: Task) {
        match task {
            Task::Whole(parts) => self.spent.extend(parts),
            Task::Next(part, begun) => {
                let number = part.connection();
                self.spent.push(part);
                let Some(long) = self.long.get_mut(&number) else { return };
                (long.begun, long.is_taken) = (begun, false);
                if !long.parts.is_empty() {
                    self.ready.push_back(Job::Next(number));
                } else if long.begun.is_none() {
                    self.long.remove(&number);
                }
            }
        }
    }
}

impl Task {
    /// Does it; what is left for the next part of the connection stands in it then.
    fn carry_out(&mut self, analyst: &mut Analyst) {
        match self {
            Self::Whole(parts) => {
                for part in parts {
                    analyst.take(part, None);
                }
            }
            Self::Next(part, begun) => *begun = analyst.take(part, begun.take()),
        }
    }
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
        Self { shared: Arc::new(shared), threads: None, batch: Vec::new(), batch_packets: 0 }
    }

    /// Takes what `session` has gathered, and gives back room.
    pub(super) fn take_from(&mut self, session: &mut Session) {
        let mut is_posted = false;
        while let Some(part) = session.next_part() {
            if part.is_first() && part.is_last() {
                self.batch_packets += part.packets();
                self.batch.push(part);
                if self.batch.len() >= BATCH || self.batch_packets >= BATCH_PACKETS {
                    self.post_batch();
                    is_posted = true;
                }
            } else {
                self.post(|board| board.put(part));
                is_posted = true;
            }
        }
        if is_posted {
            let spent = mem::take(&mut lock(&self.shared.board).spent);
            for part in spent {
                session.take_back(part);
            }
        }
    }

    /// The report over all that `session` has read.
    pub(super) fn finish(mut self, mut session: Session) -> Report {
        while session.close_some() {
            self.take_from(&mut session);
        }
        self.catch_up();
        self.dismiss();
        let all = self.shared.analysts.iter();
        session.finish_with(all.map(|one| mem::replace(&mut *lock(one), Analyst::new(None))))
    }

    /// What is known so far of what `session` has read.
    pub(super) fn provisional(&mut self, session: &Session) -> Report {
        self.catch_up();
        let board = lock(&self.shared.board);
        let begun = |number| board.long.get(&number).and_then(|long| long.begun.as_ref());
        let standing = session.standing().into_iter().map(|part| {
            let begun = begun(part.connection());
            part.account(begun)
        });
        session
            .provisional_with(self.shared.analysts.iter().map(|one| lock(one).so_far()), standing)
    }

    /// Waits until all is analysed that was taken.
    fn catch_up(&mut self) {
        self.post_batch();
        let mut board = lock(&self.shared.board);
        while board.waiting + board.running > 0 && board.mistake.is_none() {
            board = self.shared.lend_a_hand(board);
        }
        give_up_if_mistaken(board);
    }

    fn post_batch(&mut self) {
        self.batch_packets = 0;
        if !self.batch.is_empty() {
            let batch = mem::take(&mut self.batch);
            self.post(|board| {
                board.ready.push_back(Job::Whole(batch));
                board.waiting += 1;
            });
        }
    }

    /// Puts something on the board; lends a hand while too much is there.
    fn post(&mut self, put: impl FnOnce(&mut Board)) {
        let mut board = lock(&self.shared.board);
        put(&mut board);
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
        // Whoever wakes finds the board free.
        self.shared.job.notify_one();
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
            board = match board.next() {
                Some(task) => self.carry_out(board, task, number),
                None => self.job.wait(board).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Does a task on the reading thread, or waits until one is done.
    fn lend_a_hand<'a>(&'a self, mut board: MutexGuard<'a, Board>) -> MutexGuard<'a, Board> {
        match board.next() {
            Some(task) => self.carry_out(board, task, 0),
            None => self.done.wait(board).unwrap_or_else(PoisonError::into_inner),
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
        if !board.ready.is_empty() {
            self.job.notify_one();
        }
        self.done.notify_one();
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
}
