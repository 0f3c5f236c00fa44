//! The details of an alarm, from the text of its rule.

use serde_json::{Map, Value as Json};

use super::rule::{AlarmRules, Rule, Subject};
use super::values::Values;
use crate::predicate::Mode;

impl Rule {
    /// The details that the rule gives its alarm: `data`, where the newest values of the rule's keys replace `${key}`, and
    /// `dashboardId`. `None` if the rule has neither: the alarm keeps its details.
    pub fn details(&self, rules: &AlarmRules, values: &Values) -> Option<Map<String, Json>> {
        let mut details = Map::new();
        if let Some(text) = &self.details {
            details.insert("data".into(), self.filled(text, rules, values).into());
        }
        if let Some(dashboard) = &self.dashboard {
            details.insert("dashboardId".into(), dashboard.to_string().into());
        }
        (!details.is_empty()).then_some(details)
    }

    fn filled(&self, text: &str, rules: &AlarmRules, values: &Values) -> String {
        let mut text = text.to_owned();
        for filter in &self.filters {
            let Subject::Key(key) = filter.subject else { continue };
            let Some(observed) = values.get(key) else { continue };
            let place = format!("${{{}}}", rules.keys()[usize::from(key)].name);
            if text.contains(&place) {
                text = text.replace(&place, &Mode::Rule.text(observed.value.as_ref()));
            }
        }
        text
    }
}
