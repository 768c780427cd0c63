// SPDX-License-Identifier: GPL-2.0

//! The two lists that entries are in while nobody uses them: the idle ones in the order of their
//! last use, and those whose memory has changed, until they are deregistered.
//!
//! The links are references between the entries, protected by the store's lock. An entry is in at
//! most one of the lists.

use super::{
    entry::EntryRef,
    store::State, //
};

/// The ends of the two lists.
///
/// # Invariants
///
/// - The entries from `newest` over `older` to `oldest`, and back over `newer`, are those in the
///   store that have no references, the most recently used one first.
/// - The entries from `dead` over `older` are in no store.
#[derive(Default)]
pub(super) struct Lists {
    newest: Option<EntryRef>,
    oldest: Option<EntryRef>,
    dead: Option<EntryRef>,
}

impl State {
    /// Makes an entry that has lost its last reference the most recently used one.
    pub(super) fn make_idle(&mut self, entry: &EntryRef) {
        let second = self.lists.newest.replace(entry.clone());
        match &second {
            Some(second) => second.local.access_mut(self).newer = Some(entry.clone()),
            None => self.lists.oldest = Some(entry.clone()),
        }
        entry.local.access_mut(self).older = second;
    }

    /// Takes an entry out of the list of idle ones. It must be in it.
    pub(super) fn unlink_idle(&mut self, entry: &EntryRef) {
        let local = entry.local.access_mut(self);
        let (newer, older) = (local.newer.take(), local.older.take());
        match &newer {
            Some(newer) => newer.local.access_mut(self).older = older.clone(),
            None => self.lists.newest = older.clone(),
        }
        match older {
            Some(older) => older.local.access_mut(self).newer = newer,
            None => self.lists.oldest = newer,
        }
    }

    /// The idle entry whose last use is longest ago.
    pub(super) fn oldest_idle(&self) -> Option<EntryRef> {
        self.lists.oldest.clone()
    }

    /// Puts an entry, which is in no list and not in the store, with the dead ones.
    pub(super) fn make_dead(&mut self, entry: EntryRef) {
        let next = self.lists.dead.take();
        entry.local.access_mut(self).older = next;
        self.lists.dead = Some(entry);
    }

    /// Takes one of the dead entries, to be dropped outside the lock.
    pub(super) fn take_dead(&mut self) -> Option<EntryRef> {
        let entry = self.lists.dead.take()?;
        let next = entry.local.access_mut(self).older.take();
        self.lists.dead = next;
        Some(entry)
    }
}
