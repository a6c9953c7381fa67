//! `plumb resolve`: a person decides the outcome of a call in doubt.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use apply::doubt::resolve::{OpenCall, ResolveError};
use apply::session::Session;
use engine::address::Address;
use engine::journal::{CallId, Pending, Record};
use engine::shell;
use engine::state::Snapshot;

use super::state::parse;
use crate::args::{Resolve, SpecArgs};
use crate::environment;
use crate::error::{CommandError, Status};
use crate::folder::Folder;
use crate::output::Output;
use crate::providers::Configured;
use crate::resolved;
use crate::runtime;
use crate::stored_state;
use crate::system::System;

pub(crate) fn run(
    base: &Path,
    args: &Resolve,
    output: &Arc<Output>,
) -> Result<Status, CommandError> {
    let folder = Folder::new(base, None)?;
    runtime::wait_for(async {
        match &args.address {
            None => show(&folder, output).await,
            Some(address) => {
                let asked = Asked { folder: &folder, base, args };
                decide(&asked, &parse(address)?, output).await
            }
        }
    })
}

/// The user's request.
struct Asked<'a> {
    folder: &'a Folder,
    base: &'a Path,
    args: &'a Resolve,
}

impl<'a> Asked<'a> {
    /// Returns the values of variables, with the folder to which the paths of their files are relative.
    fn given(&self) -> (&'a Path, &'a SpecArgs) {
        (self.base, &self.args.spec)
    }
}

async fn show(folder: &Folder, output: &Output) -> Result<Status, CommandError> {
    let folded = stored_state::load(folder).await?;
    if folded.snapshot.pending.is_empty() {
        output.data("Nothing is in doubt.\n");
        return Ok(Status::Done);
    }
    for (call, pending) in &folded.snapshot.pending {
        output.data(&line(*call, pending, folded.holder.is_some()));
    }
    Ok(if folded.holder.is_some() { Status::Done } else { Status::InDoubt })
}

fn line(call: CallId, pending: &Pending, running: bool) -> String {
    let why = pending.why(running);
    let address = &pending.started.address;
    render::safe::text(&format!("{address}: {}: {why}", what(call, pending))) + "\n"
}

/// Describes a call in words: its operation, its object, and its number.
fn what(call: CallId, pending: &Pending) -> String {
    let started = &pending.started;
    let object = started.object.as_ref().map(|id| format!(" of {id}")).unwrap_or_default();
    format!("{}{object} ({call})", started.operation.word())
}

async fn decide(
    asked: &Asked<'_>,
    address: &Address,
    output: &Output,
) -> Result<Status, CommandError> {
    let Asked { folder, args, .. } = asked;
    if args.adopt.is_none() && !args.absent {
        return Err(CommandError::new(format!("what became of the call for {address}?")).help(
            "give `--adopt ID` if an object with this id is there, or `--absent` if there is none",
        ));
    }
    let store = folder.store()?;
    let holder = System::holder("resolve");
    if store.load().await?.snapshot.is_none() {
        return Err(CommandError::new("nothing was applied yet, so nothing is in doubt"));
    }
    let mut session = Session::open(&*store, &holder, Duration::ZERO, &System, None).await?;
    match decision(asked, session.snapshot(), address, output).await {
        Ok(record) => {
            session.record(record)?;
            session.close().await?;
            let address = render::safe::text(&address.to_string());
            output.talk(&format!(
                "decided; the next `plumb plan` shows what follows for {address}\n"
            ));
            Ok(Status::Done)
        }
        Err(error) => {
            session.close().await?;
            Err(error)
        }
    }
}

/// Returns the one call in doubt that the user means.
fn chosen<'a>(
    snapshot: &'a Snapshot,
    address: &Address,
    call: Option<CallId>,
) -> Result<OpenCall<'a>, CommandError> {
    let doubts: Vec<_> = OpenCall::about(snapshot, address)
        .filter(|doubt| call.is_none_or(|call| call == doubt.call()))
        .collect();
    match (doubts.as_slice(), call) {
        ([doubt], _) => Ok(*doubt),
        ([], call) => {
            let which = call.map(|call| format!(" with call {call}")).unwrap_or_default();
            Err(CommandError::new(format!("nothing is in doubt about {address}{which}"))
                .help("`plumb resolve` lists what is"))
        }
        (several, _) => {
            let calls: Vec<_> = several.iter().map(|it| what(it.call(), it.pending())).collect();
            let count = several.len();
            let calls = calls.join(", ");
            Err(CommandError::new(format!("{count} calls are in doubt about {address}: {calls}"))
                .help("each is decided by itself: say with `--call` which one you mean"))
        }
    }
}

/// Returns the record of the person's decision.
async fn decision(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    address: &Address,
    output: &Output,
) -> Result<Record, CommandError> {
    let doubt = chosen(snapshot, address, asked.args.call)?;
    let Some(id) = &asked.args.adopt else {
        refuse_what_shows(asked, &doubt, output).await?;
        return Ok(doubt.absent(System::now_ms()));
    };
    let id = super::import::id(id)?;
    // This check comes before any service is started or called.
    doubt.check(&id)?;
    let configured = connect(asked, &doubt, output).await?;
    Ok(doubt.adopt(&id, &configured.providers).await?)
}

async fn connect(
    asked: &Asked<'_>,
    doubt: &OpenCall<'_>,
    output: &Output,
) -> Result<Configured, CommandError> {
    let named = BTreeSet::from([doubt.provider().clone()]);
    let described = resolved::named_providers(&named, asked.folder, asked.given(), output)?;
    described.connect(asked.folder, &environment::variable, output).await
}

/// Refuses to forget an object with a known id as long as a read shows it. Otherwise no state would have it
/// any more.
async fn refuse_what_shows(
    asked: &Asked<'_>,
    doubt: &OpenCall<'_>,
    output: &Output,
) -> Result<(), CommandError> {
    let Some(id) = doubt.object().filter(|_| !asked.args.force) else { return Ok(()) };
    let unseen = |error: CommandError| {
        let message = format!("whether {id} is gone cannot be seen: {}", error.message);
        CommandError::new(message).help("try again later; `--force` takes your word for it")
    };
    let configured = connect(asked, doubt, output).await.map_err(unseen)?;
    let shows = doubt.shows(id, &configured.providers).await;
    if !shows.map_err(|error| unseen(error.into()))? {
        return Ok(());
    }
    let address = &doubt.pending().started.address;
    Err(CommandError::new(format!("{id} is there")).help(format!(
        "`plumb resolve {} --adopt {}` says so",
        shell::quoted(&address.to_string()),
        shell::quoted(&id.0)
    )))
}

impl From<ResolveError> for CommandError {
    fn from(error: ResolveError) -> Self {
        let failed = Self::new(error.to_string());
        match error {
            ResolveError::Unread(error) if error.kind == provider_port::Kind::NotFound => {
                failed.help("is the id right, and the account?")
            }
            _ => failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::digest::SealKey;
    use engine::journal::{Outcome, PhaseRef, ProgramKind, Seen, Started};
    use engine::schema::Operation;
    use engine::state::ObjectId;
    use engine::stored::Stored;

    use super::*;

    fn started(call: u64, operation: Operation, object: Option<&str>) -> Record {
        let kind = match operation {
            Operation::Delete => ProgramKind::Delete,
            Operation::Update => ProgramKind::Update,
            _ => ProgramKind::Create,
        };
        Record::Started(Box::new(Started {
            call: CallId(call),
            step: format!("s{call}"),
            address: "unit.u".parse().unwrap(),
            provider: "cloud".into(),
            account: None,
            operation,
            phase: PhaseRef::new(kind, 0, 0, 1),
            object: object.map(|id| ObjectId(id.into())),
            nonce: None,
            name: None,
            secret_name: None,
            deposes: true,
            managed: engine::sorted::Set::new(),
            sensitive: engine::value::Paths::none(),
            unshown: engine::sorted::Set::new(),
            input_fingerprints: std::collections::BTreeMap::new(),
            dependencies: engine::sorted::Set::new(),
            at_ms: 0,
        }))
    }

    fn made(call: u64, id: &str) -> Record {
        let object = Seen { id: ObjectId(id.into()), attributes: Stored::default() };
        let outcome = Outcome::Done { object: Some(object) };
        Record::Finished { call: CallId(call), outcome }
    }

    /// A run was killed while it changed an address's object and deleted the object that a replace had put
    /// aside.
    #[test]
    fn of_two_calls_in_doubt_about_one_address_a_person_names_one() {
        let key = SealKey::from_random([0; 32]);
        let mut snapshot = Snapshot::new("lineage".to_owned(), key);
        for record in [
            started(0, Operation::Create, None),
            made(0, "o1"),
            started(1, Operation::Create, None),
            made(1, "o2"),
            started(2, Operation::Update, Some("o2")),
        ] {
            snapshot.fold(&record).unwrap();
        }
        let address = "unit.u".parse().unwrap();
        let call = |snapshot: &Snapshot, call: Option<u64>| {
            let doubt = chosen(snapshot, &address, call.map(CallId));
            doubt.map(|doubt| doubt.call().0).map_err(|error| error.message)
        };
        assert_eq!(call(&snapshot, None), Ok(2));
        snapshot.fold(&started(3, Operation::Delete, Some("o1"))).unwrap();
        let refused = call(&snapshot, None).unwrap_err();
        for part in ["update of o2 (c2)", "delete of o1 (c3)"] {
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!((call(&snapshot, Some(2)), call(&snapshot, Some(3))), (Ok(2), Ok(3)));
        let other = call(&snapshot, Some(4)).unwrap_err();
        assert!(other.contains("nothing is in doubt about unit.u with call c4"), "{other}");
        let absent = chosen(&snapshot, &address, Some(CallId(3))).unwrap().absent(0);
        assert!(matches!(absent, Record::Resolved { call: CallId(3), .. }));
    }
}
