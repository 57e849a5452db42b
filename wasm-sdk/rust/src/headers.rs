//! Headers as the gateway gives them, looked up without regard to case; edits go through an action.

use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(transparent)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every value of a name, in the order they came.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(given, _)| given.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Every name and value, in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
