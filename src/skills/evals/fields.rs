//! Values of a JSON file with their places in it, for messages.

use serde_json::{Map, Value};

/// A value, and its place, such as `evals[2].files`.
pub(super) struct Field<'v> {
    pub value: &'v Value,
    pub place: String,
}

/// A message that begins with the place of the problem.
pub(super) type FieldProblem = String;

impl<'v> Field<'v> {
    /// The problem of this value.
    pub(super) fn problem(&self, message: &str) -> FieldProblem {
        let separator = if self.place.is_empty() { "" } else { ": " };
        format!("{}{separator}{message}", self.place)
    }

    /// The value of a key, if there is one; null counts as none.
    pub(super) fn get(&self, key: &str) -> Option<Field<'v>> {
        let value = self.value.get(key).filter(|value| !value.is_null())?;
        Some(Field { value, place: format!("{}.{key}", self.place) })
    }

    /// The object, whose keys must be among these.
    pub(super) fn object(&self, known: &[&[&str]]) -> Result<&'v Map<String, Value>, FieldProblem> {
        let object = self.value.as_object().ok_or_else(|| self.problem("it is not an object"))?;
        let is_known = |key: &&String| known.iter().any(|keys| keys.contains(&key.as_str()));
        match object.keys().find(|key| !is_known(key)) {
            None => Ok(object),
            Some(unknown) => Err(format!(
                "{}.{unknown}: this key is not defined here; what is tested stands in {}",
                self.place,
                known.first().map(|keys| keys.join(", ")).unwrap_or_default()
            )),
        }
    }

    /// The members of a list; none if the key is missing.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Field<'v>>, FieldProblem> {
        self.get(key).map_or(Ok(Vec::new()), |list| list.items())
    }

    /// The members.
    pub(super) fn items(&self) -> Result<Vec<Field<'v>>, FieldProblem> {
        let list = self.value.as_array().ok_or_else(|| self.problem("it is not a list"))?;
        let members = list.iter().enumerate();
        let field = |(index, value)| Field { value, place: format!("{}[{index}]", self.place) };
        Ok(members.map(field).collect())
    }

    /// A text that is not blank.
    pub(super) fn text(&self) -> Result<&'v str, FieldProblem> {
        let text = self.value.as_str().filter(|text| !text.trim().is_empty());
        text.ok_or_else(|| self.problem("it is not a text, or empty"))
    }

    /// A text or a list of texts.
    pub(super) fn texts(&self) -> Result<Vec<Field<'v>>, FieldProblem> {
        let all = match self.value {
            Value::Array(_) => self.items()?,
            value => vec![Field { value, place: self.place.clone() }],
        };
        match all.iter().find(|it| it.value.as_str().is_none_or(str::is_empty)) {
            None if !all.is_empty() => Ok(all),
            _ => Err(self.problem("it is neither a text nor a list of texts")),
        }
    }
}
