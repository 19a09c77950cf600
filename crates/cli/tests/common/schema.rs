//! What is printed as JSON keeps to the schema that says so.

use boon::{Compiler, Schemas};
use serde_json::Value;

/// The answers of `tcpwhy check` keep to docs/check.schema.json.
pub(crate) fn assert_is_as_promised(told: &Value) {
    let schema =
        std::fs::read_to_string(super::in_repository("docs/check.schema.json")).expect("is there");
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource("check", serde_json::from_str(&schema).expect("JSON")).expect("a schema");
    let index = compiler.compile("check", &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(told, index) {
        panic!("{error:#}");
    }
}
