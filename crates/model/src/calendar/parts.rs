//! The parts of a time that a pattern reads, and the time that they make.

use chrono::{Datelike as _, NaiveDate, NaiveDateTime, NaiveTime, Weekday};

use super::iso::YEAR_MAX;
use super::moment::Moment;

/// What a text says in the form of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternTime {
    /// A time with an offset from UTC.
    Moment(Moment),
    /// A local time. Without a time of day it is midnight.
    Local(NaiveDateTime),
}

/// The parts of a time.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) year: Option<i32>,
    pub(super) month: Option<u32>,
    pub(super) day: Option<u32>,
    pub(super) day_of_year: Option<u32>,
    pub(super) week_year: Option<i32>,
    pub(super) week: Option<u32>,
    pub(super) week_from_sunday: Option<u32>,
    pub(super) week_from_monday: Option<u32>,
    pub(super) weekday: Option<Weekday>,
    hour: Option<u32>,
    is_afternoon: Option<bool>,
    pub(super) minute: Option<u32>,
    pub(super) second: Option<u32>,
    pub(super) billionths: Option<u32>,
    pub(super) offset_s: Option<i32>,
    pub(super) moment: Option<Moment>,
}

impl Parts {
    pub(super) fn set_hour(&mut self, hour: u32) {
        self.hour = Some(hour);
        self.adjust_hour();
    }

    pub(super) fn set_afternoon(&mut self, is_afternoon: bool) {
        self.is_afternoon = Some(is_afternoon);
        self.adjust_hour();
    }

    fn adjust_hour(&mut self) {
        if let (Some(hour), Some(is_afternoon)) = (self.hour, self.is_afternoon) {
            self.hour = Some(hour % 12 + if is_afternoon { 12 } else { 0 });
        }
    }

    /// The time that the parts make.
    ///
    /// # Errors
    /// A part is missing, or there is no such time.
    pub(super) fn time(&self) -> Result<PatternTime, String> {
        if let Some(moment) = self.moment {
            return Ok(PatternTime::Moment(moment));
        }
        let local = self.date()?.and_time(self.time_of_day()?);
        match self.offset_s {
            None => Ok(PatternTime::Local(local)),
            Some(offset_s) => Moment::of_local(local, offset_s)
                .map(PatternTime::Moment)
                .ok_or_else(|| "it is outside of the years -9999 to 9999".to_owned()),
        }
    }

    fn date(&self) -> Result<NaiveDate, String> {
        let missing = || {
            "the pattern needs a year with month and day, a day of the year, or a week and a day of the week"
                .to_owned()
        };
        let no_date = || "there is no such date".to_owned();
        let date = match self.year {
            None => self.date_of_week().ok_or_else(missing)?,
            Some(year) => self
                .date_of_month(year)
                .or_else(|| self.date_of_week())
                .or_else(|| {
                    let of_year = self.day_of_year.map(|day| NaiveDate::from_yo_opt(year, day));
                    of_year
                        .or_else(|| self.date_of_numbered_week(year, self.week_from_sunday, Weekday::Sun))
                        .or_else(|| self.date_of_numbered_week(year, self.week_from_monday, Weekday::Mon))
                })
                .ok_or_else(missing)?,
        };
        let date = date.ok_or_else(no_date)?;
        match self.weekday {
            Some(weekday) if weekday != date.weekday() => {
                Err(format!("{date} is a {}, not a {weekday}", date.weekday()))
            }
            _ => Ok(date),
        }
    }

    /// The outer `None` of this and the next methods is a missing part, the inner one a date that does not exist.
    fn date_of_month(&self, year: i32) -> Option<Option<NaiveDate>> {
        Some(NaiveDate::from_ymd_opt(year, self.month?, self.day?))
    }

    fn date_of_week(&self) -> Option<Option<NaiveDate>> {
        let (year, week, weekday) = (self.week_year?, self.week?, self.weekday?);
        let is_within = |date: &NaiveDate| u64::from(date.year().unsigned_abs()) <= YEAR_MAX;
        Some(NaiveDate::from_isoywd_opt(year, week, weekday).filter(is_within))
    }

    /// The date of a week that is counted from the first such weekday of the year.
    fn date_of_numbered_week(
        &self,
        year: i32,
        week: Option<u32>,
        begins: Weekday,
    ) -> Option<Option<NaiveDate>> {
        let (week, weekday) = (week?, self.weekday?);
        let first = NaiveDate::from_weekday_of_month_opt(year, 1, begins, 1)?.ordinal();
        // Days before the first week belong to week 0.
        let day = (first + week * 7 + weekday.days_since(begins)).checked_sub(7);
        Some(day.and_then(|day| NaiveDate::from_yo_opt(year, day)))
    }

    fn time_of_day(&self) -> Result<NaiveTime, String> {
        let parts = [self.hour, self.minute, self.second, self.billionths];
        let given = parts.iter().take_while(|part| part.is_some()).count();
        if parts[given..].iter().any(Option::is_some) {
            return Err("the pattern needs the hour before minutes, seconds and fractions".to_owned());
        }
        let [hour, minute, second, billionths] = parts.map(Option::unwrap_or_default);
        let time = NaiveTime::from_hms_nano_opt(hour, minute, second, billionths);
        time.ok_or_else(|| "there is no such time of day".to_owned())
    }
}
