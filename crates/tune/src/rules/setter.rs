//! Setters: how a parameter is set. The statements and the printed texts come from the same data.

use serde::{Deserialize, Serialize};

use crate::statement::Statement;
use crate::unit::Unit;
use crate::value::Value;

/// How a parameter is set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setter {
    /// The form of its statements.
    pub(super) form: Form,
    /// Commands that keep the value over a restart, in the same form.
    pub(super) keep: Vec<String>,
    /// The place where a person must write the value so that a restart keeps it.
    pub(super) by_hand: Option<String>,
    /// Statements that remove a value, for the undo of a parameter that was not set before.
    pub(super) reset: Vec<String>,
    /// The grant that a user needs, as a sentence.
    pub(super) grant: Option<String>,
}

/// The form of statements. Each has rules of its own for literals.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// Statements of MySQL.
    Mysql(Vec<String>),
    /// Statements of PostgreSQL.
    Postgresql(Vec<String>),
    /// Commands of Redis.
    Redis(Vec<String>),
    /// A PUT of JSON: path and body.
    Put { path: String, body: String },
    /// A file below `/proc/sys` or `/sys`. `None`: the file of `/proc/sys` that has the parameter's name.
    Write(Option<String>),
    /// A text for a person, and the reason why it needs one.
    Manual { text: String, reason: Manual },
}

/// Why `tacho tune` cannot carry out a change itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Manual {
    /// The server reads the setting from its file.
    File,
    /// The limit belongs to the shell, the login or the service manager that starts the process.
    Service,
    /// The provider's console has the setting.
    Console,
    /// The program of the client has the setting.
    Client,
    /// Data must be written again, or a new installation is needed.
    Data,
    /// Another program makes the change.
    Tool,
}

impl Manual {
    /// The reason as a sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::File => "The server reads this setting from its file.",
            Self::Service => "What starts the process (a shell, a login, a service manager) sets this limit.",
            Self::Console => "The console of the provider has this setting.",
            Self::Client => "The program of the client has this setting.",
            Self::Data => "The data must be written again, or a new installation is needed.",
            Self::Tool => {
                "Another program makes this change, such as nodetool, cqlsh, the shell of HBase or cpupower."
            }
        }
    }
}

/// The thing that is set: a parameter, and the thing of a group that it belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) parameter: &'a str,
    pub(crate) unit: Unit,
    pub(crate) subject: Option<&'a str>,
}

/// A value to write: its text, and whether the unit of the parameter belongs to it.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    text: String,
    has_unit: bool,
}

impl Written {
    pub(crate) fn value(value: &Value) -> Self {
        // Zero and negative values have meanings of their own, and no unit.
        Self { text: value.to_string(), has_unit: !matches!(value, Value::Number(number) if *number <= 0.0) }
    }

    /// A text in place of a value, such as `{suggested}`.
    pub(crate) fn placeholder(text: &str) -> Self {
        Self { text: text.to_owned(), has_unit: true }
    }
}

impl Setter {
    /// The statements that set a value, or the reason why there are none.
    pub(crate) fn statements(&self, setting: Setting<'_>, value: &Written) -> Result<Vec<Statement>, Manual> {
        match &self.form {
            Form::Mysql(templates) | Form::Postgresql(templates) => Ok(templates
                .iter()
                .map(|template| Statement::Sql(self.fill(template, setting, value)))
                .collect()),
            Form::Redis(templates) => Ok(self.commands(templates, setting, value)),
            Form::Put { path, body } => Ok(vec![Statement::Put {
                path: self.fill(path, setting, value),
                body: self.fill(body, setting, value),
            }]),
            Form::Write(path) => {
                let own = || format!("/proc/sys/{}", setting.parameter.replace('.', "/"));
                let path = path.as_ref().map_or_else(own, |path| self.fill(path, setting, value));
                Ok(vec![Statement::Write { path, text: value.text.clone() }])
            }
            Form::Manual { reason, .. } => Err(*reason),
        }
    }

    /// The statements that keep the value over a restart.
    pub(crate) fn keeping(&self, setting: Setting<'_>, value: &Written) -> Vec<Statement> {
        match &self.form {
            Form::Redis(_) => self.commands(&self.keep, setting, value),
            _ => self.keep.iter().map(|text| Statement::Sql(self.fill(text, setting, value))).collect(),
        }
    }

    /// The statements that remove the value, if the target can forget one.
    pub(crate) fn resetting(&self, setting: Setting<'_>) -> Option<Vec<Statement>> {
        let nothing = Written::placeholder("");
        let sql = |template: &String| Statement::Sql(self.fill(template, setting, &nothing));
        (!self.reset.is_empty()).then(|| self.reset.iter().map(sql).collect())
    }

    /// The change in words.
    pub(crate) fn text(&self, setting: Setting<'_>, value: &Written) -> String {
        let steps = match (&self.form, self.statements(setting, value)) {
            (Form::Manual { text, .. }, _) => self.fill(text, setting, value),
            (_, statements) => {
                let kept = self.keeping(setting, value);
                let all = statements.into_iter().flatten().chain(kept);
                all.map(|statement| statement.to_string()).collect::<Vec<_>>().join(", then ")
            }
        };
        match &self.by_hand {
            Some(place) => format!("{steps}, and {place}"),
            None => steps,
        }
    }

    /// The reason why there are no statements.
    pub(super) fn manual(&self) -> Option<Manual> {
        match &self.form {
            Form::Manual { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// The grant that a user needs for the statements.
    pub(crate) fn grant(&self) -> Option<&str> {
        self.grant.as_deref()
    }

    fn commands(&self, templates: &[String], setting: Setting<'_>, value: &Written) -> Vec<Statement> {
        // The words are told apart before a value with blanks comes into them.
        let command = |template: &String| {
            template.split_whitespace().map(|word| self.fill(word, setting, value)).collect()
        };
        templates.iter().map(|template| Statement::Command(command(template))).collect()
    }

    fn fill(&self, template: &str, setting: Setting<'_>, value: &Written) -> String {
        // The value comes last: it may hold braces.
        template
            .replace("{name}", setting.subject.unwrap_or("{name}"))
            .replace("{parameter}", setting.parameter)
            .replace("{value}", &self.literal(setting.unit, value))
    }

    /// A value as the target reads it.
    fn literal(&self, unit: Unit, value: &Written) -> String {
        let text = &value.text;
        let suffix = |bytes: &'static str| match unit {
            _ if !value.has_unit => "",
            Unit::Bytes => bytes,
            Unit::Milliseconds => "ms",
            Unit::Seconds => "s",
            _ => "",
        };
        match &self.form {
            Form::Mysql(_) if unit != Unit::Text => text.clone(),
            Form::Mysql(_) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
            // Strings follow the standard: a backslash is a character like others.
            Form::Postgresql(_) => format!("'{}{}'", text.replace('\'', "''"), suffix("B")),
            Form::Put { .. } => match suffix("b") {
                "" if unit != Unit::Text => text.clone(),
                suffix => serde_json::Value::from(format!("{text}{suffix}")).to_string(),
            },
            Form::Redis(_) | Form::Write(_) | Form::Manual { .. } => text.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setter(form: Form) -> Setter {
        Setter { form, keep: Vec::new(), by_hand: None, reset: Vec::new(), grant: None }
    }

    fn text(form: Form, unit: Unit, value: impl Into<Value>) -> String {
        let setting = Setting { parameter: "p", unit, subject: Some("it") };
        setter(form).text(setting, &Written::value(&value.into()))
    }

    fn templates(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn values_are_quoted_as_the_target_reads_them() {
        let mysql = || Form::Mysql(templates("SET GLOBAL {parameter} = {value}"));
        assert_eq!(text(mysql(), Unit::Bytes, 1024.0), "SET GLOBAL p = 1024");
        assert_eq!(text(mysql(), Unit::Text, "a'; DROP\\"), "SET GLOBAL p = 'a''; DROP\\\\'");
        let postgresql = || Form::Postgresql(templates("ALTER SYSTEM SET {parameter} = {value}"));
        assert_eq!(text(postgresql(), Unit::Bytes, 1024.0), "ALTER SYSTEM SET p = '1024B'");
        assert_eq!(text(postgresql(), Unit::Bytes, -1.0), "ALTER SYSTEM SET p = '-1'");
        assert_eq!(text(postgresql(), Unit::Milliseconds, 0.0), "ALTER SYSTEM SET p = '0'");
        assert_eq!(text(postgresql(), Unit::Text, "o'n\\"), "ALTER SYSTEM SET p = 'o''n\\'");
        let put = || Form::Put { path: "/{name}/_settings".into(), body: "{\"i.p\": {value}}".into() };
        assert_eq!(text(put(), Unit::Seconds, 30.0), "PUT /it/_settings {\"i.p\": \"30s\"}");
        assert_eq!(text(put(), Unit::Seconds, -1.0), "PUT /it/_settings {\"i.p\": -1}");
        assert_eq!(text(put(), Unit::Text, "a\"b"), "PUT /it/_settings {\"i.p\": \"a\\\"b\"}");
        assert_eq!(text(Form::Write(None), Unit::Count, 1.0), "sysctl -w p=1");
    }

    #[test]
    fn a_value_with_blanks_or_braces_stays_one_word() {
        let redis = setter(Form::Redis(templates("CONFIG SET {parameter} {value}")));
        let setting = Setting { parameter: "save", unit: Unit::Text, subject: None };
        let statements = redis.statements(setting, &Written::value(&"60 1 {name}".into())).unwrap();
        let words = ["CONFIG", "SET", "save", "60 1 {name}"].map(str::to_owned).to_vec();
        assert_eq!(statements, [Statement::Command(words)]);
    }

    #[test]
    fn what_a_person_does_has_a_reason_and_no_statement() {
        let form = Form::Manual { text: "{parameter} = {value} in my.cnf".into(), reason: Manual::File };
        let setting = Setting { parameter: "p", unit: Unit::Count, subject: None };
        let value = Written::value(&5.0.into());
        assert_eq!(setter(form.clone()).statements(setting, &value), Err(Manual::File));
        assert_eq!(setter(form).text(setting, &value), "p = 5 in my.cnf");
    }
}
