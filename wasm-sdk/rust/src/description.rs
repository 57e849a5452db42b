//! What a module says about itself in its `describe` export.

use crate::host::output_bytes;
use serde_json::{json, Map, Value};

/// `weir_sdk::describe!(Description::new().needs_request_body());`
pub struct Description {
    needs: Map<String, Value>,
    instance: &'static str,
    on_failure: &'static str,
    settings: Map<String, Value>,
}

impl Description {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { needs: Map::new(), instance: "fresh", on_failure: "open", settings: Map::new() }
    }

    pub fn needs_request_body(mut self) -> Self {
        self.needs.insert("request_body".into(), true.into());
        self
    }

    /// With all headers, also `authorization`, `cookie` and the like; named ones are given anyway.
    pub fn needs_credentials(mut self) -> Self {
        self.needs.insert("credentials".into(), true.into());
        self
    }

    /// The module does without the caller's address, which may then be empty: spares a look at the connection.
    pub fn needs_no_client_ip(mut self) -> Self {
        self.needs.insert("client_ip".into(), false.into());
        self
    }

    /// Bodies of unstreamed answers.
    pub fn needs_response_body(mut self) -> Self {
        self.needs.insert("response_body".into(), true.into());
        self
    }

    /// Only these headers of the request are given; none for an empty list. Left out, all are.
    pub fn needs_headers(mut self, names: &[&str]) -> Self {
        self.needs.insert("headers".into(), names_of(names));
        self
    }

    /// Only these headers of the answer are given; none for an empty list. Left out, all are.
    pub fn needs_response_headers(mut self, names: &[&str]) -> Self {
        self.needs.insert("response_headers".into(), names_of(names));
        self
    }

    /// Warm instances, one for each tenant and thread: what a call keeps in variables may be there for the next one.
    pub fn reuses_instance(mut self) -> Self {
        self.instance = "reuse";
        self
    }

    /// Warm instances that serve every tenant: for modules that keep only what everybody may see.
    pub fn shares_instance(mut self) -> Self {
        self.instance = "shared";
        self
    }

    /// A request is refused when the module fails; left out, it goes on as if the module were not there.
    pub fn fails_closed(mut self) -> Self {
        self.on_failure = "closed";
        self
    }

    /// A setting of the module, of the type text, integer, number, boolean or list (parts between commas): from then on
    /// registration refuses settings that it does not name, and values that do not fit.
    pub fn setting(self, name: &str, kind: &str, is_required: bool) -> Self {
        self.setting_as(name, json!({ "type": kind, "required": is_required }))
    }

    /// Likewise, with every member that ABI.md names.
    pub fn setting_as(mut self, name: &str, setting: Value) -> Self {
        self.settings.insert(name.into(), setting);
        self
    }

    #[doc(hidden)]
    pub fn send(self) -> i32 {
        let Self { needs, instance, on_failure, settings } = self;
        let mut description = json!({ "abi": crate::ABI_VERSION, "needs": needs, "instance": instance, "on_failure": on_failure });
        if !settings.is_empty() {
            description["settings"] = settings.into();
        }
        output_bytes(description.to_string().as_bytes());
        0
    }
}

fn names_of(names: &[&str]) -> Value {
    if names.is_empty() {
        return false.into();
    }
    names.iter().map(|name| name.to_ascii_lowercase()).collect::<Vec<_>>().into()
}
