//! Reads and validates the setters of a product and the changes of its rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::change::{Change, Set};
use super::error::RuleError;
use super::raw::{RawRule, RawSetter};
use super::rule::{Product, Restart};
use super::setter::{Form, Setter};

/// The setters of a product by name, and the name of its process.
pub(super) struct Setters {
    by_name: BTreeMap<String, Arc<Setter>>,
    process: String,
}

impl Setters {
    pub(super) fn read(raw: BTreeMap<String, RawSetter>, process: String) -> Result<Self, RuleError> {
        let setter = |(name, raw): (String, RawSetter)| {
            let subject = format!("setter {name}");
            setter(raw)
                .map(|setter| (name, Arc::new(setter)))
                .map_err(|reason| RuleError::new(subject, reason))
        };
        Ok(Self { by_name: raw.into_iter().map(setter).collect::<Result<_, _>>()?, process })
    }
}

fn setter(raw: RawSetter) -> Result<Setter, String> {
    let manual = match (raw.manual, raw.reason) {
        (Some(text), Some(reason)) => Some(Form::Manual { text, reason }),
        (None, None) => None,
        _ => return Err("`manual` and `reason` go together".into()),
    };
    let write = raw.write.map(|path| Form::Write(Some(path).filter(|path| path != "sysctl")));
    let put = raw.put.map(|put| Form::Put { path: put.path, body: put.body });
    let forms =
        [raw.mysql.map(Form::Mysql), raw.postgresql.map(Form::Postgresql), raw.redis.map(Form::Redis)];
    let mut forms = forms.into_iter().chain([put, write, manual]).flatten();
    let form = forms.next().ok_or("it has no form: mysql, postgresql, redis, put, write or manual")?;
    if forms.next().is_some() {
        return Err("it has several forms".into());
    }
    let has_value = match &form {
        Form::Mysql(texts) | Form::Postgresql(texts) | Form::Redis(texts) => {
            texts.iter().any(|text| text.contains("{value}"))
        }
        Form::Put { body, .. } => body.contains("{value}"),
        Form::Manual { text, .. } => text.contains("{parameter}") || text.contains("{value}"),
        Form::Write(_) => true,
    };
    if !has_value {
        return Err("a template has no {value}".into());
    }
    Ok(Setter { form, keep: raw.keep, by_hand: raw.by_hand, reset: raw.reset, grant: raw.grant })
}

/// The change of a rule.
pub(super) fn change(product: &Product, setters: &Setters, raw: &RawRule) -> Result<Change, String> {
    let of_set = [
        ("also", raw.also.is_some()),
        ("undo_also", raw.undo_also.is_some()),
        ("example", raw.example.is_some()),
        ("restores", raw.restores.is_some()),
    ];
    let of_words =
        [("change", raw.change.is_some()), ("undo", raw.undo.is_some()), ("reason", raw.reason.is_some())];
    let given = |fields: &[(&'static str, bool)]| {
        fields.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
    };
    let Some(name) = &raw.set else {
        if let Some(field) = given(&of_set) {
            return Err(format!("`{field}` needs `set`"));
        }
        let (Some(change), Some(undo), Some(reason)) = (&raw.change, &raw.undo, raw.reason) else {
            return Err("it has neither `set` nor all of `change`, `undo` and `reason`".into());
        };
        return Ok(Change::Words { change: change.clone(), undo: undo.clone(), reason });
    };
    if let Some(field) = given(&of_words) {
        return Err(format!("`{field}` does not go with `set`"));
    }
    let setter = setters.by_name.get(name).ok_or_else(|| format!("there is no setter `{name}`"))?;
    let other = |name: &String| {
        let parameter = product.parameters.get(name);
        let parameter =
            parameter.ok_or_else(|| format!("restores: the parameter `{name}` is not declared"))?;
        Ok::<_, String>((name.clone(), parameter.unit))
    };
    Ok(Change::Set(Set {
        setter: Arc::clone(setter),
        restarted: (raw.restart == Restart::Restart).then(|| setters.process.clone()),
        also: raw.also.clone(),
        undo_also: raw.undo_also.clone(),
        example: raw.example.clone(),
        restores: raw.restores.as_ref().map(other).transpose()?,
    }))
}
