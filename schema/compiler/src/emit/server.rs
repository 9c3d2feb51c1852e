//! Writes the server trait of an interface and its dispatch.

use std::fmt::Write;

use super::{docs, lifetime};
use crate::model::{Interface, Schema};
use crate::names;

/// Writes `Server` and `dispatch`.
pub fn emit(out: &mut String, schema: &Schema, interface: &Interface) {
    let name = &interface.name;
    let mut methods = String::new();
    let mut arms = String::new();
    for (ordinal, method) in interface.methods.iter().enumerate() {
        let params = &schema.structs[&method.params];
        let results = &schema.structs[&method.results];
        let results_path = lifetime(schema, method.results, "'_");
        let member = names::member(&method.name);
        let mut arguments = String::new();
        let mut passed = Vec::new();
        if !params.fields.is_empty() {
            let _ = write!(arguments, ", params: {}", lifetime(schema, method.params, "'_"));
            passed.push("params");
        }
        if results.borrows(schema) {
            arguments.push_str(", room: usize");
            passed.push("room");
        }
        let (returns, wrap) = if results.fields.is_empty() {
            let path = lifetime(schema, method.results, "'_");
            ("()".to_owned(), format!(".map(|()| {path} {{}})"))
        } else {
            (results_path, String::new())
        };
        docs(&mut methods, "    ", &method.doc);
        if method.doc.is_empty() {
            let _ = writeln!(methods, "    /// `{name}.{}`.", method.name);
        }
        if results.borrows(schema) {
            let _ = writeln!(
                methods,
                "    ///\n    /// `room` is how many bytes of text, data and lists, each rounded up to 8, the caller can take."
            );
        }
        let _ = writeln!(
            methods,
            "    fn {member}(&mut self{arguments}) -> ::schema_wire::Answer<{returns}>;"
        );
        let _ = writeln!(
            arms,
            "        {ordinal} => {{\n            \
             let room = ::schema_wire::room_for::<{result_type}>(results.len())?;\n            \
             let message = match ::schema_wire::Message::new(params) {{\n                \
             Ok(message) => message,\n                \
             Err(error) => return ::schema_wire::params_error(error, results),\n            }};\n            \
             let params = match message.get::<{param_type}>() {{\n                \
             Ok(params) => params,\n                \
             Err(error) => return ::schema_wire::params_error(error, results),\n            }};\n            \
             ::schema_wire::answer_with(server.{member}({passed}){wrap}, results)\n        }}",
            result_type = lifetime(schema, method.results, "'_"),
            param_type = lifetime(schema, method.params, "'_"),
            passed = passed.join(", "),
        );
    }
    let _ = writeln!(
        out,
        "/// Serves `{name}`. A method returns its results, an exception, or that it answers later.\n\
         pub trait Server {{\n{methods}}}"
    );
    let _ = writeln!(
        out,
        "/// Serves one call: reads `params`, runs the method, writes its results or exception into\n\
         /// `results`, which is as large as the caller can take and at least an inline slot.\n\
         ///\n\
         /// The error is the call's completion status. Parameters that are no message of this\n\
         /// interface, an unknown method and a buffer too small for the results are found before\n\
         /// the method runs.\n\
         pub fn dispatch<S: Server + ?Sized>(server: &mut S, method: u16, params: &[u8], results: &mut [u8])\n    \
         -> Result<::schema_wire::Served, ::schema_wire::Status> {{\n    \
         match method {{\n{arms}        _ => Err(::schema_wire::Status::Unimplemented),\n    }}\n}}"
    );
}
