//! The index of subscriptions: a trie over the levels of topic filters.
//!
//! A match visits, for each level of the topic, the nodes with the same text and with `+`. Its cost does not depend on the
//! number of subscriptions that do not match. Each node has an upper bound of it, the nodes that any topic can visit from there on: a
//! topic visits at most one child with a text, and the child for `+`.

use std::str::Split;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::children::Children;
use super::session::Session;
use super::subscription::{Quality, SubscriptionOptions};
use model::topic::{group_of, levels};

/// The subscriptions of a tenant.
#[derive(Debug, Default)]
pub(super) struct SubscriptionIndex {
    root: Node,
    len: usize,
}

/// A subscription of a session.
#[derive(Debug, Clone)]
pub(super) struct Subscriber {
    pub(super) session: Arc<Session>,
    pub(super) options: SubscriptionOptions,
}

impl Subscriber {
    pub(super) fn new(session: &Arc<Session>, options: SubscriptionOptions) -> Self {
        Self { session: Arc::clone(session), options }
    }
}

/// A node. Most nodes have one child or one subscriber, so its parts are allocated when they are needed.
#[derive(Debug, Default)]
struct Node {
    children: Option<Box<Children<Node>>>,
    /// The child for `+`.
    one: Option<Box<Node>>,
    /// Filters that end here.
    here: Option<Box<Subscribers>>,
    /// Filters that end with `#` below this node.
    below: Option<Box<Subscribers>>,
    /// The highest cost of the children with a text; 0 if there are none.
    dearest_child: u32,
    /// Most nodes that a topic can visit below this one.
    cost_below: u32,
}

#[derive(Debug, Default)]
struct Subscribers {
    each: Vec<Subscriber>,
    groups: Vec<Group>,
}

/// The members of a shared subscription. One of them gets each message.
#[derive(Debug)]
struct Group {
    /// The whole filter, `$share/GROUP/FILTER`. Groups of the same list differ in their names only.
    share: Arc<str>,
    members: Vec<Subscriber>,
    next: AtomicUsize,
}

impl SubscriptionIndex {
    /// Number of subscriptions.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a filter begins with this level, which is not a wildcard.
    pub(super) fn has_level(&self, level: &str) -> bool {
        self.root.children.as_ref().is_some_and(|children| children.get(level).is_some())
    }

    /// Whether no node is left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Most nodes that a match visits, whatever the topic is.
    pub(super) fn cost(&self) -> u32 {
        self.root.cost()
    }

    /// The cost with another filter.
    pub(super) fn cost_with(&self, filter: &str) -> u32 {
        self.root.cost_with(levels(group_of(filter).1))
    }

    /// The nodes that a match visits, and the cost as it is without what was kept of earlier changes.
    #[cfg(test)]
    pub(super) fn visits_and_cost(&self, topic: &str) -> (u32, u32) {
        (self.root.visits(levels(topic), topic.starts_with('$')), self.root.computed_cost())
    }

    /// Adds or replaces the subscription of a session to a filter. Returns whether it is a new one.
    pub(super) fn put(&mut self, filter: &str, subscriber: Subscriber) -> bool {
        let (share, own) = share_of(filter);
        let is_new = self.root.put(levels(own), share, subscriber);
        self.len += usize::from(is_new);
        is_new
    }

    /// Removes the subscription of a session to a filter.
    pub(super) fn remove(&mut self, filter: &str, session: &Session) {
        let (share, own) = share_of(filter);
        self.len -= usize::from(self.root.remove(levels(own), share, session));
    }

    /// Members of a shared subscription that may take over a message of QoS 1 or 2, at most `max`: connected ones first, in turns.
    pub(super) fn members(
        &self,
        share: &str,
        max: usize,
        is_connected: impl Fn(&Session) -> bool,
    ) -> Vec<Subscriber> {
        let (_, own) = group_of(share);
        let list = self.root.at(own);
        let group = list.and_then(|list| list.groups.iter().find(|group| &*group.share == share));
        let Some(group) = group else { return Vec::new() };
        let in_turn = group.in_turn().filter(|member| member.options.qos != Quality::AtMostOnce);
        let connected = in_turn.clone().filter(|member| is_connected(&member.session));
        connected.chain(in_turn).take(max).cloned().collect()
    }

    /// The subscribers of a topic. A subscriber of several matching filters appears once, with the highest QoS of them and all
    /// their identifiers. Of each group one member is selected, if possible one with `is_connected`; it appears besides its own
    /// subscriptions and for each of its groups, because every shared subscription gets its copy [MQTT5 4.8.2].
    pub(super) fn matches(&self, topic: &str, is_connected: impl Fn(&Session) -> bool) -> Vec<Match> {
        let mut lists = Vec::new();
        let is_of_server = topic.starts_with('$');
        self.root.collect(levels(topic), is_of_server, &mut lists);
        let mut found =
            Vec::with_capacity(lists.iter().map(|list| list.each.len() + list.groups.len()).sum());
        found.extend(lists.iter().flat_map(|list| &list.each).map(Match::new));
        if lists.len() > 1 {
            merge(&mut found);
        }
        let groups = lists.iter().flat_map(|list| &list.groups);
        found.extend(groups.filter_map(|group| group.select(&is_connected)));
        found
    }
}

/// A session that gets a message.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) session: Arc<Session>,
    pub(super) options: SubscriptionOptions,
    /// Subscription identifiers besides the one of `options`.
    pub(super) more_identifiers: Vec<u32>,
    /// The whole filter of the shared subscription that selected the message.
    pub(super) share: Option<Arc<str>>,
}

impl Match {
    fn new(subscriber: &Subscriber) -> Self {
        let Subscriber { session, options } = subscriber;
        Self { session: Arc::clone(session), options: *options, more_identifiers: Vec::new(), share: None }
    }
}

/// Merges the entries of the same session.
fn merge(found: &mut Vec<Match>) {
    found.sort_by_key(|found| found.session.id());
    found.dedup_by(|next, first| {
        if next.session.id() != first.session.id() {
            return false;
        }
        let (a, b) = (first.options, next.options);
        first.options = SubscriptionOptions {
            qos: a.qos.max(b.qos),
            // A message that one of the subscriptions wants is sent.
            no_local: a.no_local && b.no_local,
            retain_as_published: a.retain_as_published || b.retain_as_published,
            identifier: a.identifier.or(b.identifier),
        };
        if a.identifier.is_some() {
            first.more_identifiers.extend(b.identifier.map(u32::from));
        }
        true
    });
}

impl Group {
    fn select(&self, is_connected: &impl Fn(&Session) -> bool) -> Option<Match> {
        let mut in_turn = self.in_turn();
        let first = in_turn.next()?;
        let mut all = std::iter::once(first).chain(in_turn);
        let selected = all.find(|member| is_connected(&member.session)).unwrap_or(first);
        Some(Match { share: Some(Arc::clone(&self.share)), ..Match::new(selected) })
    }

    /// All members, each time from another one on.
    fn in_turn(&self) -> impl Iterator<Item = &Subscriber> + Clone {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let len = self.members.len();
        (0..len).map(move |n| &self.members[first.wrapping_add(n) % len])
    }
}

impl Subscribers {
    /// Returns whether the subscription is a new one.
    fn put(&mut self, share: Option<&str>, subscriber: Subscriber) -> bool {
        let list = match share {
            None => &mut self.each,
            Some(share) => {
                let at = self.groups.iter().position(|group| &*group.share == share).unwrap_or_else(|| {
                    let members = Vec::new();
                    self.groups.push(Group { share: share.into(), members, next: AtomicUsize::new(0) });
                    self.groups.len() - 1
                });
                &mut self.groups[at].members
            }
        };
        let known = list.iter_mut().find(|known| known.session.id() == subscriber.session.id());
        match known {
            Some(known) => {
                *known = subscriber;
                false
            }
            None => {
                // Most filters have one subscriber; a vector begins with room for four.
                if list.is_empty() {
                    list.reserve_exact(1);
                }
                list.push(subscriber);
                true
            }
        }
    }

    /// Returns whether the subscription was there.
    fn remove(&mut self, share: Option<&str>, session: &Session) -> bool {
        let list = match share {
            None => Some(&mut self.each),
            Some(share) => {
                self.groups.iter_mut().find(|group| &*group.share == share).map(|group| &mut group.members)
            }
        };
        let Some(list) = list else { return false };
        let Some(at) = list.iter().position(|known| known.session.id() == session.id()) else { return false };
        list.swap_remove(at);
        list.shrink_to(2 * list.len());
        self.groups.retain(|group| !group.members.is_empty());
        true
    }

    fn is_empty(&self) -> bool {
        self.each.is_empty() && self.groups.is_empty()
    }
}

impl Node {
    /// The subscribers of a filter.
    fn at(&self, filter: &str) -> Option<&Subscribers> {
        let mut node = self;
        for level in levels(filter) {
            node = match level {
                "#" => return node.below.as_deref(),
                "+" => node.one.as_deref()?,
                _ => node.children.as_ref()?.get(level)?,
            };
        }
        node.here.as_deref()
    }

    /// Most nodes that a topic can visit from this one on.
    fn cost(&self) -> u32 {
        self.cost_below.saturating_add(1)
    }

    fn set_cost(&mut self) {
        let one = self.one.as_ref().map_or(0, |one| one.cost());
        self.cost_below = self.dearest_child.saturating_add(one);
    }

    fn cost_with(&self, mut rest: Split<'_, char>) -> u32 {
        let (mut dearest, mut one) = (self.dearest_child, self.one.as_ref().map_or(0, |one| one.cost()));
        match rest.next() {
            None | Some("#") => {}
            Some("+") => {
                one = self
                    .one
                    .as_ref()
                    .map_or_else(|| cost_of(rest.clone()), |one| one.cost_with(rest.clone()));
            }
            Some(level) => {
                let child = self.children.as_ref().and_then(|children| children.get(level));
                let cost = child.map_or_else(|| cost_of(rest.clone()), |child| child.cost_with(rest.clone()));
                dearest = dearest.max(cost);
            }
        }
        dearest.saturating_add(one).saturating_add(1)
    }

    /// Returns whether the subscription is a new one. Adds nodes as needed.
    fn put(&mut self, mut rest: Split<'_, char>, share: Option<&str>, subscriber: Subscriber) -> bool {
        let Some(level) = rest.next() else {
            return self.here.get_or_insert_default().put(share, subscriber);
        };
        let is_new = match level {
            "#" => return self.below.get_or_insert_default().put(share, subscriber),
            "+" => self.one.get_or_insert_default().put(rest, share, subscriber),
            _ => {
                let child = self.children.get_or_insert_default().get_or_default(level);
                let is_new = child.put(rest, share, subscriber);
                self.dearest_child = self.dearest_child.max(child.cost());
                is_new
            }
        };
        self.set_cost();
        is_new
    }

    fn remove(&mut self, mut rest: Split<'_, char>, share: Option<&str>, session: &Session) -> bool {
        let Some(level) = rest.next() else { return remove_from(&mut self.here, share, session) };
        match level {
            "#" => remove_from(&mut self.below, share, session),
            "+" => {
                let removed = self.one.as_mut().is_some_and(|one| one.remove(rest, share, session));
                self.one.take_if(|one| one.is_empty());
                self.set_cost();
                removed
            }
            _ => self.remove_from_child(level, rest, share, session),
        }
    }

    fn remove_from_child(
        &mut self,
        level: &str,
        rest: Split<'_, char>,
        share: Option<&str>,
        session: &Session,
    ) -> bool {
        let Some(children) = &mut self.children else { return false };
        let Some(child) = children.get_mut(level) else { return false };
        let was_dearest = child.cost() == self.dearest_child;
        let removed = child.remove(rest, share, session);
        let is_dearest = child.cost() == self.dearest_child && !child.is_empty();
        if child.is_empty() {
            children.remove(level);
        }
        if was_dearest && !is_dearest {
            self.dearest_child = highest_cost(children, self.dearest_child);
            self.set_cost();
        }
        self.children.take_if(|children| children.is_empty());
        removed
    }

    #[cfg(test)]
    fn visits(&self, mut rest: Split<'_, char>, is_of_server: bool) -> u32 {
        let Some(level) = rest.next() else { return 1 };
        let child = self.children.as_ref().and_then(|children| children.get(level));
        let one = self.one.as_ref().filter(|_| !is_of_server);
        let of_child = child.map_or(0, |child| child.visits(rest.clone(), false));
        1 + of_child + one.map_or(0, |one| one.visits(rest, false))
    }

    #[cfg(test)]
    fn computed_cost(&self) -> u32 {
        let children = self.children.iter().flat_map(|children| children.values());
        let dearest = children.map(Self::computed_cost).max().unwrap_or(0);
        1 + dearest + self.one.as_ref().map_or(0, |one| one.computed_cost())
    }

    fn is_empty(&self) -> bool {
        self.children.is_none() && self.one.is_none() && self.here.is_none() && self.below.is_none()
    }

    fn collect<'a>(
        &'a self,
        mut rest: Split<'_, char>,
        is_of_server: bool,
        lists: &mut Vec<&'a Subscribers>,
    ) {
        // A wildcard at the beginning matches no topic of the server [MQTT-4.7.2-1].
        if !is_of_server {
            lists.extend(self.below.as_deref());
        }
        let Some(level) = rest.next() else {
            lists.extend(self.here.as_deref());
            return;
        };
        if let Some(child) = self.children.as_ref().and_then(|children| children.get(level)) {
            child.collect(rest.clone(), false, lists);
        }
        if let Some(one) = self.one.as_ref().filter(|_| !is_of_server) {
            one.collect(rest, false, lists);
        }
    }
}

/// The cost of the nodes for these levels, if there is none of them.
fn cost_of(rest: Split<'_, char>) -> u32 {
    1 + rest.take_while(|level| *level != "#").count() as u32
}

/// The highest cost of children. Ends at the first one with the highest cost of before: it cannot have grown.
fn highest_cost(children: &Children<Node>, before: u32) -> u32 {
    let mut highest = 0;
    for child in children.values() {
        highest = highest.max(child.cost());
        if highest == before {
            break;
        }
    }
    highest
}

/// The whole filter if it is a shared one, and the filter without its group.
fn share_of(filter: &str) -> (Option<&str>, &str) {
    let (group, own) = group_of(filter);
    (group.map(|_| filter), own)
}

fn remove_from(list: &mut Option<Box<Subscribers>>, share: Option<&str>, session: &Session) -> bool {
    let removed = list.as_mut().is_some_and(|list| list.remove(share, session));
    list.take_if(|list| list.is_empty());
    removed
}
