//! `plumb provider prove`: settles what a descriptor marks `# to prove`, with sample objects on a server, and
//! reports other facts about the server.

mod attributes;
mod server;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::diagnostics::FileId;
use provider_http::{HttpProvider, Recorder, Timing};
use provider_openapi::{Answer, Mark, Question, marks, settled};
use provider_port::Object;
use provider_port::conformance::{Attempt, Made, Suite, make, remove};
use provider_port::sample::Sample;
use render::safe;

use super::ledger::Ledger;
use super::trial::{clean, configured, reach, samples, seed};
use super::{descriptor_file, sample_values};
use crate::args::Trial;
use crate::error::{CommandError, Status};
use crate::output::Output;
use crate::runtime;

/// The largest descriptor that is read, in bytes.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// A mark with its result.
struct Finding {
    mark: Mark,
    /// The answer, or the reason why there is none.
    answer: Result<Answer, String>,
}

/// A fact about the server that no mark asks for.
struct Fact {
    place: String,
    words: String,
}

/// A descriptor whose marks are being settled.
struct Proof<'a> {
    text: String,
    args: &'a Trial,
    ledger: &'a Ledger,
    made: Made,
    findings: Vec<Finding>,
    facts: Vec<Fact>,
    /// The recorder of all calls.
    recorder: Arc<Recorder>,
    /// The longest time after which an object showed in lists.
    delay: Duration,
    /// The number of creates so far.
    creates: usize,
}

pub(super) fn run(base: &Path, args: &Trial, output: &Output) -> Result<Status, CommandError> {
    let path = Path::new(&args.descriptor);
    let text = descriptor_file::text(base, path, BYTES_MAX)?;
    let file = descriptor_file::read(base, path)?;
    output.diagnostics(&file.diagnostics, &file.sources);
    let Some(descriptor) = file.descriptor else { return Ok(Status::Failed) };
    let values = args.values.as_ref().map(|path| sample_values::read(base, path)).transpose()?;
    let samples = samples(&descriptor, &values.unwrap_or_default(), &args.types)?;
    let names = samples.iter().filter_map(|sample| {
        Some((sample.schema.name.clone(), sample.schema.name_attribute.clone()?))
    });
    let (name, names) = (descriptor.name().clone(), names.collect());
    let recorder = Recorder::new(Timing::default());
    let provider = configured(descriptor, &args.against, Some(recorder.network()))?;
    let (ledger, proof, cleaned) = runtime::wait_for(async {
        reach(&provider, &samples).await?;
        let (ledger, left) = Ledger::open(base, &name, &args.against, names)?;
        clean(&provider, &ledger, left, Some(output)).await?;
        let mut proof = Proof::new(text.clone(), args, &ledger, recorder);
        if !args.clean {
            for sample in &samples {
                proof.prove(&provider, sample).await;
            }
            proof.conclude();
        }
        let proof = proof.done();
        let cleaned = clean(&provider, &ledger, ledger.left()?, None).await;
        Ok((ledger, proof, cleaned))
    })?;
    let Done { text: settled, findings, facts } = proof;
    output.data(&table(&findings, &facts));
    if settled != text {
        replace(&base.join(path), path, &settled)?;
    }
    let answered = findings.iter().filter(|finding| finding.answer.is_ok()).count();
    output.talk(&format!(
        "{}: {answered} of {} marks are settled\n",
        path.display(),
        findings.len()
    ));
    cleaned.map_err(|error| error.help(format!("{} has what is left", ledger.path().display())))?;
    ledger.finish()?;
    Ok(Status::Done)
}

/// The findings of a proof.
struct Done {
    text: String,
    findings: Vec<Finding>,
    facts: Vec<Fact>,
}

impl<'a> Proof<'a> {
    fn new(text: String, args: &'a Trial, ledger: &'a Ledger, recorder: Arc<Recorder>) -> Self {
        let (made, findings, facts) = (Made::new(), Vec::new(), Vec::new());
        let delay = Duration::ZERO;
        Self { text, args, ledger, made, findings, facts, recorder, delay, creates: 0 }
    }

    fn done(self) -> Done {
        Done { text: self.text, findings: self.findings, facts: self.facts }
    }

    fn tell(&mut self, place: impl Into<String>, words: impl Into<String>) {
        self.facts.push(Fact { place: place.into(), words: words.into() });
    }

    /// Settles the marks of one type.
    async fn prove(&mut self, provider: &HttpProvider, sample: &Sample) {
        let ty = sample.schema.name.clone();
        let marks: Vec<Mark> = marks(&self.text).into_iter().filter(|it| *it.ty == *ty).collect();
        let suite = Suite::new(provider).witness(self.ledger, seed());
        let object = match self.create(&suite, sample).await {
            Ok(object) => object,
            Err(why) => {
                let failed = |mark| Finding { mark, answer: Err(why.clone()) };
                self.findings.extend(marks.into_iter().map(failed));
                return;
            }
        };
        let object = self.shown(provider, &ty, object).await;
        self.made.insert(ty.clone(), object.clone());
        for mark in marks {
            let answer = match mark.question {
                None => Err("look at it by hand".to_owned()),
                Some(Question::IsFilled) => attributes::filled(sample, &mark, &object),
                Some(Question::IsFixed) => self.fixed(sample, &mark, &object).await,
                Some(Question::IsOrdered) => self.ordered(&suite, sample, &mark, &object).await,
                Some(Question::IsUnique) => self.unique(&suite, sample, &object).await,
            };
            let answer = answer.and_then(|answer| {
                let text = settled(&self.text, &mark, answer).filter(|text| loads(text));
                self.text = text.ok_or("the descriptor has another form here")?;
                Ok(answer)
            });
            self.findings.push(Finding { mark, answer });
        }
        if !sample.schema.update.is_empty() {
            self.ignored((provider, &suite), sample, &object).await;
        }
        self.refusals(provider, &suite, sample, &object).await;
    }

    async fn create(&mut self, suite: &Suite<'_>, sample: &Sample) -> Result<Object, String> {
        let wanted = sample.create(&self.made)?;
        self.creates += 1;
        match make(suite, &sample.schema.name, self.creates, wanted).await? {
            Attempt::Made(object) => Ok(object),
            Attempt::Refused(why) => Err(why),
        }
    }

    /// Makes a second object with the name of the first, to see if the server accepts that.
    async fn unique(
        &mut self,
        suite: &Suite<'_>,
        sample: &Sample,
        object: &Object,
    ) -> Result<Answer, String> {
        let schema = &sample.schema;
        let name = schema.name_attribute.as_ref().filter(|name| &***name == "name");
        let name = name.ok_or("the type has no attribute `name`")?;
        if object.id.0.contains('|') {
            return Err("names below a parent are not tried".to_owned());
        }
        let mut wanted = sample.create(&self.made)?;
        let own = object.attributes.get(name).cloned().ok_or("no answer shows the name")?;
        wanted.insert(name.clone(), own);
        self.creates += 1;
        match make(suite, &schema.name, self.creates, wanted).await? {
            Attempt::Refused(_) => {
                self.refused(sample, "a second object of a name");
                Ok(Answer::Otherwise)
            }
            Attempt::Made(second) => {
                remove(suite, &schema.name, &second).await?;
                let attribute = &schema.attributes[name];
                let may_change = attribute.on_change == engine::schema::OnChange::Update
                    && attribute.constraint.length_max.is_none_or(|max| max >= 32)
                    && !schema.update.is_empty();
                Ok(if may_change { Answer::NamesChange } else { Answer::AsWritten })
            }
        }
    }
}

fn loads(text: &str) -> bool {
    provider_http::load(text, FileId(0)).0.is_some()
}

/// Replaces a file in one step.
fn replace(path: &Path, shown: &Path, text: &str) -> Result<(), CommandError> {
    let fail = |error: std::io::Error| {
        CommandError::new(format!("cannot write {}: {error}", shown.display()))
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(text.as_bytes()).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    if let Ok(known) = std::fs::metadata(path) {
        std::fs::set_permissions(file.path(), known.permissions()).map_err(fail)?;
    }
    file.persist(path).map(|_| ()).map_err(|error| fail(error.error))
}

/// Returns a table with a line for each mark and each fact.
fn table(findings: &[Finding], facts: &[Fact]) -> String {
    let place = |mark: &Mark| match &mark.attribute {
        Some(attribute) => format!("{}.{attribute}", mark.ty),
        None => mark.ty.clone(),
    };
    let of_marks = findings.iter().map(|finding| {
        let words = match &finding.answer {
            Ok(answer) => words(&finding.mark, *answer).to_owned(),
            Err(why) => format!("not settled ({}): {why}", finding.mark.words),
        };
        (place(&finding.mark), words)
    });
    let others = facts.iter().map(|fact| (fact.place.clone(), fact.words.clone()));
    let lines: Vec<(String, String)> = of_marks.chain(others).collect();
    let width = lines.iter().map(|(place, _)| place.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (place, words) in lines {
        let line = format!("{place:width$}  {words}");
        let _ = writeln!(text, "{}", safe::capped(&line, 400));
    }
    text
}

fn words(mark: &Mark, answer: Answer) -> &'static str {
    match (mark.question, answer) {
        (Some(Question::IsFilled), Answer::AsWritten) => "the server fills in a value",
        (Some(Question::IsFilled), _) => "the server fills in nothing",
        (Some(Question::IsFixed), Answer::AsWritten) => "an update does not change it",
        (Some(Question::IsFixed), _) => "an update changes it",
        (Some(Question::IsOrdered), Answer::AsWritten) => "the order counts",
        (Some(Question::IsOrdered), _) => "the order does not count: a set",
        (_, Answer::Otherwise) => "names are unique",
        (_, Answer::NamesChange) => "names are not unique, and can change",
        (_, Answer::AsWritten) => "names are not unique, and cannot change",
    }
}
