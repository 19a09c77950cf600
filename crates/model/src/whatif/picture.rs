//! One run of a change with all that graphs show of it: what a page draws while a slider moves. Its account is that of
//! [`Study::ask`] and [`Study::ask_again`]; the range, which takes many runs, is theirs alone.

use tcpwhy::report::Connection;
use tcpwhy::tracker::Config;
use tcpwhy::view::web::Fitted;

use super::work::Work;
use super::{MOST_WORK, Refusal, Study, plan, replay, ways};
use crate::fit::{Account, Fit, Progress};
use crate::scenario::plan::Plan;

/// A run by the nearest replay's kernels.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its packets, explained, with the marks of graphs.
    pub connection: Connection,
    /// The account of the data's direction.
    pub account: Account,
    /// What had not come to its end.
    pub unfinished: Vec<String>,
    /// The time and the bytes that lie before what it shows: those of the conversation on the same connection before it.
    pub before: (i64, u64),
}

impl Study {
    /// The run of these changes.
    ///
    /// # Errors
    /// The change makes no sense, or it takes too long.
    pub fn picture(&self, changes: &[String]) -> Result<Picture, Refusal> {
        let work = Work::of(MOST_WORK);
        let (connection, unfinished) = self.pictured(1, changes, &work)?;
        let account = self.account(&connection)?;
        let account = if self.remembers(changes) { account } else { account.without_remembered() };
        Ok(Picture { connection, account, unfinished, before: (0, 0) })
    }

    /// The run of the same conversation once more, on the connection that it left open.
    ///
    /// # Errors
    /// The model cannot run it.
    pub fn picture_again(&self) -> Result<Picture, Refusal> {
        let work = Work::of(MOST_WORK);
        let (once, _) = self.pictured(1, &[], &work)?;
        let once = self.account(&once)?;
        let (connection, unfinished) = self.pictured(2, &[], &work)?;
        let account = self.account(&connection)?.less(&once);
        let account = if self.remembers(&[]) { account } else { account.without_remembered() };
        Ok(Picture { connection, account, unfinished, before: (once.ns, once.bytes) })
    }

    /// The plan that was fitted, without a change.
    pub fn plan(&self) -> Option<Plan> {
        plan(&self.fit, 1, &[]).ok()
    }

    fn pictured(
        &self,
        times: u32,
        changes: &[String],
        work: &Work,
    ) -> Result<(Connection, Vec<String>), Refusal> {
        if !self.repeats() {
            return Err(Refusal::Nothing);
        }
        let kernels = self.nearest().ok_or(Refusal::Nothing)?.kernels;
        let by_rules = ways::by_rules(&self.fit, changes);
        let config = Config { detail: true, trails: true, ..Config::default() };
        replay::run(&self.fit, &plan(&self.fit, times, changes)?, kernels, &by_rules, work, config)
    }

    fn account(&self, connection: &Connection) -> Result<Account, Refusal> {
        let direction = connection.directions[self.fit.sender.index()].as_deref();
        direction.map(Account::of).ok_or(Refusal::Nothing)
    }
}

/// What a page's data has of a connection for [`Study::of_fit`].
pub fn fitted(connection: &Connection) -> Fitted {
    match Fit::of(connection) {
        Ok(fit) if fit.progress == Progress::default() => {
            Fitted::Unfit("its packets were not kept one by one".to_owned())
        }
        Ok(fit) => serde_json::to_string(&fit)
            .map_or_else(|error| Fitted::Unfit(error.to_string()), Fitted::Fit),
        Err(why) => Fitted::Unfit(why.to_string()),
    }
}
