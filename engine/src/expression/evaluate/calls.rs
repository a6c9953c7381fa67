//! Calls: arguments are computed and checked here, and functions compute in [`functions`]. Functions that
//! need more than values are here (`sensitive`, `nonsensitive`), in [`super::files`] and in
//! [`super::attempts`].

use super::access::item_at;
use super::operators::chosen;
use super::{Eval, Evaluator, Part, Source, Stop, stop};
use crate::expression::functions::{
    self, Answer, Body, Fault, Function, Parameter, Special, Wants,
};
use crate::expression::{Call, Expr, Kind, Range};
use crate::types::Type;
use crate::value::{Datum, Path, Paths, Value};

impl Evaluator<'_> {
    pub(super) fn call(&mut self, call: &Call, range: Range) -> Eval {
        let function = functions::find(&call.name)
            .ok_or_else(|| Stop { error: functions::unknown(&call.name, range), fatal: false })?;
        if let Body::Special(special) = function.body {
            return self.special(special, call, range);
        }
        let mut parts = self.eval_all(&call.arguments)?;
        let spread = self.spread_secret(function, call, &parts, range);
        let mut places: Vec<Range> = call.arguments.iter().map(|expr| expr.range).collect();
        if call.spread && !self.spread(&mut parts, &mut places)? {
            let secret = self.any_secret(&parts);
            let arguments = self.reify_all(&parts, range)?;
            let kind = kind_of(function, arguments, true);
            let ty = (function.result)(&[]);
            return Ok(Part::unknown(ty, Expr { kind, range }, secret));
        }
        let part = self.called(function, &parts, &places, range);
        let Some(source) = spread else { return part };
        let part = part.map_err(|stop| differing(function, stop, range))?;
        Ok(chosen(part.value, source))
    }

    fn called(
        &mut self,
        function: &Function,
        parts: &[Part],
        places: &[Range],
        range: Range,
    ) -> Eval {
        function.check_count(parts.len(), range).map_err(|error| Stop { error, fatal: false })?;
        let mut secret = false;
        for (index, part) in parts.iter().enumerate() {
            secret |= self.looks_at_argument(function, index, part);
            self.check_argument(function, index, part, places[index])?;
        }
        let fault = |fault: Fault| {
            if let Some(message) = fault.of_secret.filter(|_| secret) {
                return stop(range, message, None);
            }
            let place = fault.argument.and_then(|at| places.get(at)).copied().unwrap_or(range);
            stop(place, fault.message, fault.help.as_deref())
        };
        let part = match function.body {
            Body::Whole(compute) => {
                self.whole(function, parts, range, |values| compute(values).map_err(fault))?
            }
            Body::Parts(compute) => {
                self.by_parts(function, parts, range, |data| compute(data).map_err(fault))?
            }
            Body::Special(_) => unreachable_special(range)?,
        };
        self.budget.made(&part.value, range)?;
        Ok(part)
    }

    /// Returns the value of a call whose arguments are the items of a secret. Their number reveals something
    /// about the secret, so the result, or the error, must not show it.
    fn spread_secret(
        &mut self,
        function: &Function,
        call: &Call,
        parts: &[Part],
        range: Range,
    ) -> Option<Source> {
        let last = parts.last().filter(|_| call.spread)?;
        if !self.looks_at_items(last) {
            return None;
        }
        Some(match self.reify_all(parts, range) {
            Ok(exprs) => Source::built(Expr { kind: kind_of(function, exprs, true), range }),
            Err(_) => Source::Barred,
        })
    }

    fn whole(
        &mut self,
        function: &Function,
        parts: &[Part],
        range: Range,
        compute: impl FnOnce(&[Value]) -> Result<Value, Stop>,
    ) -> Eval {
        let ty = || result_type(function, parts);
        self.combine(
            parts,
            ty,
            range,
            |exprs| kind_of(function, exprs, false),
            |_| {
                let values: Vec<Value> = parts.iter().map(|part| part.value.clone()).collect();
                compute(&values)
            },
        )
    }

    /// Calls a function that moves items without looking into them; they may be unknown or sealed.
    fn by_parts(
        &mut self,
        function: &Function,
        parts: &[Part],
        range: Range,
        compute: impl FnOnce(&[Datum]) -> Result<Answer, Stop>,
    ) -> Eval {
        let data: Vec<Datum> = parts
            .iter()
            .map(|part| Datum { value: part.value.clone(), sensitive: part.sensitive.clone() })
            .collect();
        match compute(&data)? {
            Answer::Unknown => {
                let secret = self.any_secret(parts);
                let arguments = self.reify_all(parts, range)?;
                let residual = Expr { kind: kind_of(function, arguments, false), range };
                Ok(Part::unknown(result_type(function, parts), residual, secret))
            }
            Answer::Known(datum) => {
                let secret = !datum.sensitive.is_empty() || self.holds_sealed(&datum.value);
                let source = if secret {
                    self.source_if(parts, range, |exprs| kind_of(function, exprs, false))
                } else {
                    Source::None
                };
                let whole = datum.sensitive.covers(&Path::root());
                if whole && parts.len() > 1 {
                    return Ok(chosen(datum.value, source));
                }
                Ok(Part { value: datum.value, sensitive: datum.sensitive, source })
            }
        }
    }

    /// Replaces the last argument by its items; returns false if they are not known.
    fn spread(&mut self, parts: &mut Vec<Part>, places: &mut Vec<Range>) -> Result<bool, Stop> {
        let (Some(last), Some(place)) = (parts.last(), places.last().copied()) else {
            return Ok(true);
        };
        let items: Vec<Part> = match &last.value {
            Value::Unknown(_) | Value::Sealed(_) => return Ok(false),
            Value::List(items) => {
                items.iter().enumerate().map(|(at, item)| item_at(last, at, item, place)).collect()
            }
            Value::Set(items) if self.secret(last) => {
                let source = Source::Barred;
                let secret = |item: &Value| Part {
                    value: item.clone(),
                    sensitive: Paths::whole(),
                    source: source.clone(),
                };
                items.iter().map(secret).collect()
            }
            Value::Set(items) => items.iter().map(|item| Part::plain(item.clone())).collect(),
            _ => {
                let message = format!("`...` takes a list, and this is {}", self.word(last));
                return Err(stop(place, message, None));
            }
        };
        self.budget.items(items.len(), place)?;
        places.pop();
        parts.pop();
        places.extend(std::iter::repeat_n(place, items.len()));
        parts.extend(items);
        Ok(true)
    }

    /// Records that a function looks at an argument. Functions that move items look into none of them, but at
    /// the names of a map. Returns true if it looks at a secret.
    fn looks_at_argument(&mut self, function: &Function, index: usize, part: &Part) -> bool {
        let is_moved = matches!(function.body, Body::Parts(_));
        let wants = function.parameter(index).map(|parameter| parameter.wants);
        if is_moved && wants != Some(Wants::Texts) {
            self.looks_at(part);
            self.hides_items(part)
        } else {
            self.looks_into(part)
        }
    }

    fn check_argument(
        &self,
        function: &Function,
        index: usize,
        part: &Part,
        place: Range,
    ) -> Result<(), Stop> {
        let Some(Parameter { name, wants }) = function.parameter(index) else { return Ok(()) };
        if wants.holds(&part.value) {
            return Ok(());
        }
        let (of, found) = (function.name, self.word(part));
        let is_null = part.value.is_null() && !self.secret(part);
        let help = is_null.then_some("use coalesce(…, default) where null is possible");
        Err(stop(place, format!("`{name}` of {of}() is {wants}, found {found}"), help))
    }

    fn special(&mut self, special: Special, call: &Call, range: Range) -> Eval {
        let function = functions::find(&call.name);
        if let Some(function) = function {
            function
                .check_count(call.arguments.len(), range)
                .map_err(|error| Stop { error, fatal: false })?;
        }
        if call.spread {
            let message = format!("`{}` takes its arguments one by one", call.name);
            return Err(stop(range, message, None));
        }
        match special {
            Special::Try => self.first_that_works(&call.arguments, range),
            Special::Can => self.works(&call.arguments[0], range),
            Special::Sensitive => self.declared_sensitive(&call.arguments[0], range),
            Special::NonSensitive => self.declared_open(&call.arguments[0], range),
            Special::File => self.file(&call.arguments[0]),
            Special::FileBytes(shown) => self.file_bytes(&call.arguments[0], shown),
            Special::FileSet => self.file_set(&call.arguments),
            Special::TemplateFile => self.template_file(&call.arguments, range),
        }
    }

    /// Marks a value as sensitive. A value that is already sensitive keeps its source; another value is its
    /// own source.
    fn declared_sensitive(&mut self, argument: &Expr, range: Range) -> Eval {
        let part = self.eval(argument)?;
        let named = part.sensitive.covers(&Path::root()) || matches!(part.value, Value::Sealed(_));
        let source = match named {
            true => part.source,
            false if self.discloses => self.declaration(&part, range)?,
            false => Source::Barred,
        };
        Ok(Part { value: part.value, sensitive: Paths::whole(), source })
    }

    /// Allows a value to be shown although a secret went into it. A sealed value stays sealed, because it is
    /// not known in clear.
    fn declared_open(&mut self, argument: &Expr, range: Range) -> Eval {
        let part = self.eval(argument)?;
        if !self.secret(&part) {
            return Ok(part);
        }
        self.watch.looked = true;
        if self.plain(&part.value) {
            return Ok(Part::plain(part.value));
        }
        let call = Call {
            name: "nonsensitive".into(),
            arguments: vec![self.reify(&part, range)?],
            spread: false,
        };
        let residual = Expr { kind: Kind::Call(Box::new(call)), range };
        Ok(Part::unknown(part.value.type_of(), residual, false))
    }

    /// Returns the call that declares a part sensitive again.
    fn declaration(&mut self, part: &Part, range: Range) -> Result<Source, Stop> {
        match self.reify(part, range) {
            Ok(argument) => {
                let call =
                    Call { name: "sensitive".into(), arguments: vec![argument], spread: false };
                Ok(Source::built(Expr { kind: Kind::Call(Box::new(call)), range }))
            }
            Err(stop) if stop.fatal => Err(stop),
            Err(_) => Ok(Source::Barred),
        }
    }
}

fn unreachable_special(range: Range) -> Eval {
    Err(stop(range, "this function cannot be called here", None))
}

fn kind_of(function: &Function, arguments: Vec<Expr>, spread: bool) -> Kind {
    Kind::Call(Box::new(Call { name: function.name.into(), arguments, spread }))
}

fn result_type(function: &Function, parts: &[Part]) -> Type {
    let types: Vec<Type> = parts.iter().map(|part| part.value.type_of()).collect();
    (function.result)(&types)
}

/// Returns the error of a function that does not accept the items of a secret, without their number or
/// values.
fn differing(function: &Function, stop: Stop, range: Range) -> Stop {
    let message = format!("{}() cannot take what this secret list gives", function.name);
    stop.over_a_secret(range, message, Some(&format!("write {}", function.usage())))
}
