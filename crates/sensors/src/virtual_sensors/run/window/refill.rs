//! A window after a start: it takes what it remembered, and its elements come back from where they are kept.

use super::super::super::plan::{Extent, Slide, SourcePlan};
use super::super::super::sql::datum::Row;
use super::super::super::sql::grouping::GroupBy;
use super::super::checkpoint::{NeededElements, WindowPoint};
use super::Window;
use crate::virtual_sensors::limits::{WINDOW_BYTES_MAX, WINDOW_ELEMENTS_MAX};

impl Window {
    /// What the window remembers besides its elements.
    pub(in crate::virtual_sensors::run) fn point(&self) -> WindowPoint {
        WindowPoint {
            deadline: self.deadline,
            until_slide: self.until_slide,
            since_slide: self.since_slide,
            slid_at: self.slid_at,
            newest: Some(self.newest).filter(|newest| *newest > i64::MIN),
        }
    }

    /// Takes what an empty window remembered.
    pub(in crate::virtual_sensors::run) fn restore(&mut self, point: &WindowPoint) {
        self.deadline = point.deadline;
        self.until_slide = point.until_slide.max(1);
        self.since_slide = point.since_slide;
        self.slid_at = point.slid_at;
        self.newest = point.newest.unwrap_or(i64::MIN);
    }

    /// Which elements the window needs to be as it was; without a checkpoint those that it may hold.
    pub(in crate::virtual_sensors::run) fn reach(&self, is_restored: bool) -> NeededElements {
        match self.kind.size {
            _ if self.is_always_empty() => NeededElements::Newest(0),
            Extent::Count(size) => NeededElements::Newest(size.saturating_add(self.since_slide)),
            Extent::Millis(size) if !is_restored => NeededElements::LastMillis(size),
            Extent::Millis(_) if self.newest == i64::MIN => NeededElements::Newest(0),
            Extent::Millis(size) => {
                let at = self.slid_at.map_or(self.newest, |at| at.min(self.newest));
                NeededElements::Since(at.saturating_sub(size))
            }
        }
    }

    /// An element from before comes back. The window does not move; [`settle`](Self::settle) ends the filling.
    pub(in crate::virtual_sensors::run) fn fill(&mut self, plan: &SourcePlan, timed: i64, row: &Row) {
        if self.is_always_empty() {
            return;
        }
        // A fault was counted when the element came first.
        drop(self.take(plan, timed, row));
        while self.len() > WINDOW_ELEMENTS_MAX || self.bytes > WINDOW_BYTES_MAX {
            self.drop_pending();
        }
    }

    /// Lets the elements enter that had entered at the last slide. Without a checkpoint all enter.
    pub(in crate::virtual_sensors::run) fn settle(&mut self, by: Option<&GroupBy>, is_restored: bool) {
        if self.newest == i64::MIN {
            return;
        }
        match (self.kind.slide, self.slid_at) {
            (Slide::Each, _) => self.slide(by, self.newest),
            (_, None) if is_restored => {}
            (_, Some(at)) if is_restored => self.settle_as_before(by, at),
            (slide, _) => {
                self.slide(by, self.newest);
                self.begin(slide);
            }
        }
    }

    fn settle_as_before(&mut self, by: Option<&GroupBy>, slid_at: i64) {
        let since_slide = self.since_slide;
        // A slide in time shows by the times of the elements which of them came after it.
        let stay = if let Slide::Count(_) = self.kind.slide { since_slide } else { 0 };
        let waiting = self.pending.split_off(self.pending.len().saturating_sub(stay));
        self.slide(by, slid_at);
        self.pending.extend(waiting);
        self.since_slide = since_slide;
    }

    /// Sets the first slide of a window that begins with elements from before.
    fn begin(&mut self, slide: Slide) {
        match (slide, self.kind.size) {
            (Slide::Each, _) => {}
            (Slide::Millis(millis), _) => self.deadline = Some(self.newest.saturating_add(millis)),
            (Slide::Count(_), Extent::Count(size)) if self.entries.len() < size => {
                self.until_slide = size - self.entries.len();
            }
            (Slide::Count(count), _) => self.until_slide = count,
        }
    }
}
