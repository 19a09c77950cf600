//! Look after look: what every view shows.

use std::collections::BTreeMap;
use std::time::Duration;

use tcpwhy::host::snapshot::Listener;
use tcpwhy::live::{Connection, Course};
use tcpwhy_linux::record::{Clock, Stop};

use super::catch::{Catcher, Look};
use super::caught::Caught;
use super::save::Save;
use super::source::Source;
use crate::filter::{Filter, Open};

/// What was seen so far.
pub(crate) struct Watch {
    source: Source,
    save: Option<Save>,
    filter: Option<Filter>,
    catcher: Option<Catcher>,
    /// Its connections.
    pub(crate) course: Course,
    /// Those that have ended since the look before.
    pub(crate) ended: Vec<Connection>,
    /// Of the last look.
    pub(crate) listeners: Vec<Listener>,
    /// Names of processes; those that have ended stay as long as their connections are shown.
    pub(crate) processes: BTreeMap<u32, String>,
    /// Connections in `TIME_WAIT`.
    pub(crate) time_wait: u64,
    /// When the last look was, in nanoseconds since 1970.
    pub(crate) t_ns: u64,
    /// When the first was.
    pub(crate) first_ns: u64,
    /// How many there were.
    pub(crate) looks: u64,
    /// What could not be seen at the last look and was not said before.
    pub(crate) said: Vec<String>,
    /// Captures that have ended since the look before.
    pub(crate) caught: Vec<Caught>,
}

impl Watch {
    /// `strip` is how many looks are kept of each connection.
    pub(crate) fn new(
        source: Source,
        filter: Option<Filter>,
        save: Option<Save>,
        strip: usize,
    ) -> Self {
        Self {
            source,
            save,
            filter,
            catcher: None,
            course: Course::new(strip),
            ended: Vec::new(),
            listeners: Vec::new(),
            processes: BTreeMap::new(),
            time_wait: 0,
            t_ns: 0,
            first_ns: 0,
            looks: 0,
            said: Vec::new(),
            caught: Vec::new(),
        }
    }

    /// Captures what meets a condition, from the next look on.
    pub(crate) fn catch(&mut self, catcher: Option<Catcher>) {
        self.catcher = catcher;
    }

    /// Ends the captures that run, and waits for what they say.
    pub(crate) fn end(&mut self) -> Vec<Caught> {
        self.catcher.take().map(Catcher::end).unwrap_or_default()
    }

    /// Looks; `false` where there is nothing more, as at the end of a file.
    ///
    /// # Errors
    /// The kernel does not answer, or the file cannot be read or written.
    pub(crate) fn look(&mut self) -> anyhow::Result<bool> {
        self.ended.clear();
        let course = &mut self.course;
        let sample = match &mut self.save {
            // What is written is held as a whole.
            Some(_) => self.source.next()?,
            None => self.source.look(&mut |t_ns, socket| course.add(t_ns, socket))?,
        };
        let Some(sample) = sample else { return Ok(false) };
        self.said.clone_from(&sample.said);
        if let Some(save) = &mut self.save
            && let Some(why) = save.put(&sample)?
        {
            self.said.push(why);
            self.save = None;
        }
        self.t_ns = sample.t_ns;
        if self.looks == 0 {
            self.first_ns = sample.t_ns;
        }
        self.looks += 1;
        (self.listeners, self.time_wait) = (sample.listeners, sample.time_wait);
        self.processes.extend(sample.processes);
        for socket in sample.ended {
            self.course.ended(sample.t_ns, socket);
        }
        for socket in sample.sockets {
            self.course.add(sample.t_ns, socket);
        }
        self.course.end(sample.t_ns);
        self.ended = self.course.take_ended();
        self.capture();
        let (filter, processes) = (&self.filter, &self.processes);
        self.ended.retain(|each| is_asked_for(filter.as_ref(), processes, each));
        Ok(true)
    }

    fn capture(&mut self) {
        let Some(mut catcher) = self.catcher.take() else { return };
        let condition = Some(&catcher.when().filter);
        let holds = |each: &&Connection| is_asked_for(condition, &self.processes, each);
        let holding: Vec<&Connection> = self.connections().filter(holds).collect();
        let look = Look { t_ns: self.t_ns, listeners: &self.listeners };
        let mut said = Vec::new();
        self.caught = catcher.take(look, &holding, &self.ended, &mut said);
        self.said.append(&mut said);
        self.catcher = Some(catcher);
    }

    /// Open connections that were asked for, what hurts first.
    pub(crate) fn ranked(&self) -> Vec<&Connection> {
        let mut all = self.course.ranked();
        all.retain(|each| is_asked_for(self.filter.as_ref(), &self.processes, each));
        all
    }

    /// Those that were asked for, in no order.
    pub(crate) fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.course
            .connections()
            .filter(|each| is_asked_for(self.filter.as_ref(), &self.processes, each))
    }

    /// The name of the process that holds a connection.
    pub(crate) fn process(&self, connection: &Connection) -> Option<&str> {
        let owner = connection.socket.owner?;
        self.processes.get(&owner.pid).map(String::as_str)
    }

    /// Looks are as far apart as they were, not as they are asked for.
    pub(crate) const fn is_replay(&self) -> bool {
        matches!(self.source, Source::File(_))
    }
}

fn is_asked_for(
    filter: Option<&Filter>,
    processes: &BTreeMap<u32, String>,
    connection: &Connection,
) -> bool {
    filter.is_none_or(|filter| {
        let socket = &connection.socket;
        filter.accepts_open(&Open {
            local: socket.local,
            remote: socket.remote,
            tcp_state: socket.state,
            state: connection.held.as_ref().map(|held| held.state),
            process: socket
                .owner
                .map(|owner| (owner.pid, processes.get(&owner.pid).map_or("", String::as_str))),
            lags: connection.lags(),
        })
    })
}

/// When looks are due, in nanoseconds.
pub(crate) struct Pace {
    every: u64,
    due: u64,
    end: Option<u64>,
}

impl Pace {
    /// From now on, for so long.
    pub(crate) fn new(every: Duration, length: Option<Duration>) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let now = Clock::Monotonic.now();
        let end = length.map(|length| now.saturating_add(ns(length)));
        Self { every: ns(every).max(1), due: now, end }
    }

    /// Waits until a look is due; `false` if the time is over or the user has asked for the end. Looks that were missed are
    /// left out.
    pub(crate) fn wait(&mut self, stop: &Stop) -> bool {
        let now = Clock::Monotonic.now();
        self.due += self.every;
        if self.due < now {
            self.due += (now - self.due).div_ceil(self.every) * self.every;
        }
        // A little late is the last one, too: the end falls on a look.
        if self.end.is_some_and(|end| self.due > end.saturating_add(self.every / 2)) {
            return false;
        }
        !stop.within(Some(self.due - now)).unwrap_or(true)
    }
}
