//! Accounts of ended connections: all of them, or those that will be shown.

use core::cmp::Reverse;

use crate::report::Connection;

/// Which accounts are kept; the others are counted in the totals.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// How many, at least.
    pub most: usize,
    /// Those for which this is largest; of equals the first. It may look at what an account's data and
    /// transfers are and how long they took, not at what was made of them.
    pub worth: fn(&Connection) -> i64,
    /// How many of the first that carried data are kept, too.
    pub first_with_data: usize,
}

/// The accounts.
#[derive(Debug)]
pub(super) struct Kept {
    keep: Option<Keep>,
    accounts: Vec<Connection>,
    /// What an account must be worth at least to be one of the most, or else the number that it must
    /// be before to be one of the first.
    least: i64,
    before: u64,
}

impl Kept {
    pub(super) fn new(keep: Option<Keep>) -> Self {
        Self { keep, accounts: Vec::new(), least: i64::MIN, before: u64::MAX }
    }

    /// Whether all of them are kept.
    pub(super) fn are_all(&self) -> bool {
        self.keep.is_none()
    }

    /// Whether `account` may be one of those to keep. Its outline is enough.
    pub(super) fn may_keep(&self, account: &Connection) -> bool {
        self.keep.is_none_or(|keep| {
            let is_first = account.id < self.before && account.carried_data();
            is_first || (keep.worth)(account) >= self.least
        })
    }

    /// Takes an account, if it may be one of those to keep.
    pub(super) fn push(&mut self, account: Connection) {
        if !self.may_keep(&account) {
            return;
        }
        self.accounts.push(account);
        // Twice as many at most: what is sorted each time then costs each account little.
        if let Some(keep) = self.keep.filter(|keep| self.accounts.len() / 2 > keep.most.max(64)) {
            self.thin_out(keep);
        }
    }

    /// Takes the accounts that another one kept. Which are left in the end depends on neither order
    /// nor division: none that was dropped is worth more, or came before, enough of those that stay.
    pub(super) fn join(&mut self, other: Self) {
        if self.keep.is_none() && self.accounts.is_empty() {
            self.accounts = other.accounts;
        } else {
            other.accounts.into_iter().for_each(|account| self.push(account));
        }
    }

    /// Drops what is not to be kept.
    fn thin_out(&mut self, keep: Keep) {
        let accounts = &mut self.accounts;
        if accounts.len() <= keep.most {
            return;
        }
        accounts.sort_by_cached_key(|account| (Reverse((keep.worth)(account)), account.id));
        let mut others = accounts.split_off(keep.most);
        others.retain(Connection::carried_data);
        others.sort_unstable_by_key(|account| account.id);
        others.truncate(keep.first_with_data);
        self.least = accounts.last().map_or(i64::MAX, |account| (keep.worth)(account));
        if others.len() == keep.first_with_data {
            self.before = others.last().map_or(0, |account| account.id);
        }
        accounts.extend(others);
    }

    /// Those kept so far, in the order of their first packets.
    pub(super) fn so_far(&self) -> Vec<Connection> {
        sorted(self.accounts.clone())
    }

    /// Those kept, in the order of their first packets.
    pub(super) fn finish(mut self) -> Vec<Connection> {
        if let Some(keep) = self.keep {
            self.thin_out(keep);
        }
        sorted(self.accounts)
    }
}

fn sorted(mut accounts: Vec<Connection>) -> Vec<Connection> {
    // Accounts are large: their numbers are sorted, and each is moved once.
    accounts.sort_by_cached_key(|account| account.id);
    accounts
}
