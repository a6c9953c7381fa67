//! Calls: arguments are computed and checked here, functions compute in [`functions`]. The four
//! that must see more than values are here (`sensitive`, `file`) and in [`super::attempts`].

use super::access::item_at;
use super::operators::chosen;
use super::{Eval, Evaluator, Part, Source, Stop, stop, word};
use crate::expression::functions::{self, Answer, Body, Fault, Function, Special, Wants};
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
        function.check_count(parts.len(), range).map_err(|error| Stop { error, fatal: false })?;
        for (index, part) in parts.iter().enumerate() {
            self.looks_at_argument(function, index, part);
            check_argument(function, index, &part.value, places[index])?;
        }
        let fault = |fault: Fault| {
            let place = fault.argument.and_then(|at| places.get(at)).copied().unwrap_or(range);
            stop(place, fault.message, fault.help.as_deref())
        };
        let part = match function.body {
            Body::Whole(compute) => {
                self.whole(function, &parts, range, |values| compute(values).map_err(fault))?
            }
            Body::Parts(compute) => {
                self.by_parts(function, &parts, range, |data| compute(data).map_err(fault))?
            }
            Body::Special(_) => unreachable_special(range)?,
        };
        self.budget.made(&part.value, range)?;
        match spread {
            Some(source) => Ok(chosen(part.value, source)),
            None => Ok(part),
        }
    }

    /// What stands for a call whose arguments are the items of a secret: how many there are tells of it,
    /// also where there is none.
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

    /// A function that moves items without looking into them: they may be unknown or sealed.
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

    /// Replaces the last argument by its items; false when they are not known.
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
            other => {
                let message = format!("`...` takes a list, and this is {}", word(other));
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

    /// Functions that move items look into none of them, but into the names of a map.
    fn looks_at_argument(&mut self, function: &Function, index: usize, part: &Part) {
        let is_moved = matches!(function.body, Body::Parts(_));
        let wants = function.parameter(index).map(|parameter| parameter.wants);
        if is_moved && wants != Some(Wants::Texts) {
            self.looks_at(part);
        } else {
            self.looks_into(part);
        }
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
            Special::File => self.file(&call.arguments[0]),
        }
    }

    /// What is sensitive already keeps its source; what is not is its own.
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

    /// The call that declares a part sensitive again.
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

    fn file(&mut self, argument: &Expr) -> Eval {
        let part = self.eval(argument)?;
        self.looks_into(&part);
        let Value::String(path) = &part.value else {
            let message = "the path of a file is text that stands in the spec";
            return Err(stop(argument.range, message, None));
        };
        let found = self.scope.file(path);
        let content = found.map_err(|message| stop(argument.range, message, None))?;
        self.budget.bytes(content.len(), argument.range)?;
        Ok(Part::plain(Value::String(content)))
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

fn check_argument(
    function: &Function,
    index: usize,
    value: &Value,
    place: Range,
) -> Result<(), Stop> {
    let Some(parameter) = function.parameter(index) else { return Ok(()) };
    if parameter.wants.holds(value) {
        return Ok(());
    }
    let help = value.is_null().then_some("use coalesce(…, default) where null is possible");
    let Function { name, .. } = function;
    let message =
        format!("`{}` of {name}() is {}, found {}", parameter.name, parameter.wants, word(value));
    Err(stop(place, message, help))
}
