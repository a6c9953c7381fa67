//! Calls: the function, the number of its arguments, and their types.

use super::Checker;
use crate::expression::functions::{self, Body, Function, Special};
use crate::expression::typing::type_word;
use crate::expression::{Call, Expr, Kind, Range};
use crate::types::Type;
use crate::value::Value;

impl Checker<'_> {
    pub(super) fn call(&mut self, call: &Call, range: Range) -> Type {
        let Some(function) = functions::find(&call.name) else {
            self.errors.push(functions::unknown(&call.name, range));
            for argument in &call.arguments {
                self.expr(argument);
            }
            return Type::Any;
        };
        let mut types = self.arguments(function, &call.arguments);
        if call.spread {
            self.spread(call, &mut types);
        }
        let counted = function.check_count(call.arguments.len(), range);
        // The number of arguments that a list stands for is known only with the list.
        if let Err(error) = counted
            && !(call.spread && call.arguments.len() < function.required)
        {
            self.errors.push(error);
            return (function.result)(&[]);
        }
        for (index, (argument, ty)) in call.arguments.iter().zip(&types).enumerate() {
            self.argument(function, index, argument, ty);
        }
        if functions::file_request(function.name).is_some() {
            self.literal_path(&call.arguments);
        }
        (function.result)(&types)
    }

    /// Returns the types of the arguments. `can` catches a failure of its argument, and `try` catches those
    /// of all arguments but the last.
    fn arguments(&mut self, function: &Function, arguments: &[Expr]) -> Vec<Type> {
        let outside = self.tries;
        let mut types = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let catches = match function.body {
                Body::Special(Special::Can) => true,
                Body::Special(Special::Try) => index + 1 < arguments.len(),
                _ => false,
            };
            self.tries = outside || catches;
            types.push(self.expr(argument));
        }
        self.tries = outside;
        types
    }

    /// Replaces the type of the last argument by that of its items.
    fn spread(&mut self, call: &Call, types: &mut [Type]) {
        let (Some(last), Some(argument)) = (types.last_mut(), call.arguments.last()) else {
            return;
        };
        *last = match &*last {
            Type::List(item) | Type::Set(item) => (**item).clone(),
            Type::Any => Type::Any,
            other => {
                let message = format!("`...` takes a list, and this is {}", type_word(other));
                self.wrong(argument.range, message, None)
            }
        };
    }

    fn argument(&mut self, function: &Function, index: usize, argument: &Expr, ty: &Type) {
        let Some(parameter) = function.parameter(index) else { return };
        if parameter.wants.accepts(ty) {
            return;
        }
        let (name, wants) = (parameter.name, parameter.wants);
        let message =
            format!("`{name}` of {}() is {wants}, found {}", function.name, type_word(ty));
        let help = format!("write {}", function.usage());
        self.wrong(argument.range, message, Some(help));
    }

    /// Requires a literal path: the files of a spec are read before anything is computed.
    fn literal_path(&mut self, arguments: &[Expr]) {
        if let Some(argument) = arguments.first()
            && !matches!(argument.kind, Kind::Literal(Value::String(_)))
        {
            let help = "write the path as plain text, relative to the spec's folder";
            let message = "the path of a file is text that stands in the spec";
            self.wrong(argument.range, message, Some(help.to_owned()));
        }
    }
}
