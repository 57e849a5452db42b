//! What the module needs, and its handlers.

use weir_sdk::Description;

weir_sdk::describe!(Description::new().needs_headers(&[]).reuses_instance());
