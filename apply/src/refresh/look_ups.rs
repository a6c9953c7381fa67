//! The objects that data blocks look up: the lists of their types, and the reads of single objects.

use std::collections::{BTreeMap, BTreeSet};

use engine::address::{Address, Name};
use engine::config::{Config, Fetched};
use engine::digest::SealKey;
use engine::plan::input::{Mode, Observations, Observed, Options};
use engine::plan::{DataRequest, Question, Unanswered};
use engine::state::ObjectId;
use engine::stored::{KnownSecrets, SecretScanner};
use engine::value::{Attributes, Datum, Path};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use provider_port::Kind;

use super::{AT_ONCE, Key, Listed, list_types, schema};
use crate::read::read_object;
use crate::{ApplyError, DataReader, Providers};

/// The objects of some types, by provider instance and type, with their secrets sealed.
pub(crate) type SealedLists = BTreeMap<Key, BTreeMap<ObjectId, Attributes>>;

/// Returns the types that the data blocks of a config look up. Returns none for a destroy and for the
/// validation of a spec.
pub(crate) fn looked_up(
    config: &Config,
    providers: &Providers,
    options: &Options,
) -> BTreeSet<Key> {
    if options.mode == Mode::Destroy || options.validating {
        return BTreeSet::new();
    }
    let objects = config.data.values().filter(|data| Fetched::of(&data.block).is_none());
    let types = objects.flat_map(|data| {
        let instances = providers.keys().filter(|name| data.provider.may_be(name));
        instances.map(|name| (name.clone(), data.block.ty.clone()))
    });
    types.collect()
}

/// Lists the types of look-ups alone, for a plan without a refresh.
pub(crate) async fn list_for_look_ups(
    types: BTreeSet<Key>,
    providers: &Providers,
    (key, secrets): (&SealKey, &KnownSecrets),
) -> Result<SealedLists, ApplyError> {
    let lists = list_types(types.clone(), providers).await?;
    Ok(sealed(&lists, &types, providers, SecretScanner::new(key, secrets)))
}

/// Returns, out of all lists, those of the types that are looked up, with their secrets sealed.
pub(super) fn sealed(
    lists: &BTreeMap<Key, Listed>,
    types: &BTreeSet<Key>,
    providers: &Providers,
    sealer: SecretScanner<'_>,
) -> SealedLists {
    let mut all = SealedLists::new();
    for (key, listed) in lists.iter().filter(|(key, _)| types.contains(key)) {
        let Some(schema) = schema(providers, key) else { continue };
        let sensitive = schema.sensitive();
        let objects = listed.iter().map(|(id, object)| {
            let mut attributes = sealer.seal(&object.attributes, &sensitive, &[]);
            attributes.retain(|name, _| !schema.is_hidden(name));
            (id.clone(), attributes)
        });
        all.insert(key.clone(), objects.collect());
    }
    all
}

/// The answer to one question of a look-up.
enum Answer {
    Object(Observed),
    Fetched(Result<Datum, Unanswered>),
}

/// Answers the questions of look-ups, and adds the answers to the observations.
pub(crate) async fn answer(
    requests: &[DataRequest],
    (providers, reader): (&Providers, &dyn DataReader),
    (key, secrets): (&SealKey, &KnownSecrets),
    observations: &mut Observations,
) -> Result<(), ApplyError> {
    let sealer = SecretScanner::new(key, secrets);
    let answers = stream::iter(requests).map(|DataRequest { address, question }| async move {
        let answer = match question {
            Question::Object { provider, id } => {
                Answer::Object(object(address, (provider, id), providers, sealer).await?)
            }
            Question::Fetch(fetch) => Answer::Fetched(reader.read(fetch).await.map(|mut datum| {
                // An answer may repeat a secret. It is sensitive there, even if the source of the answer says
                // that nothing is.
                datum.sensitive.extend_below(&Path::root(), &secrets.places(&datum.value));
                datum
            })),
        };
        Ok::<_, ApplyError>((address.clone(), answer))
    });
    let answers: Vec<(Address, Answer)> = answers.buffered(AT_ONCE).try_collect().await?;
    for (address, answer) in answers {
        match answer {
            Answer::Object(seen) => drop(observations.read.insert(address, seen)),
            Answer::Fetched(read) => drop(observations.answers.insert(address, read)),
        }
    }
    Ok(())
}

/// Reads the object that a look-up found in a list.
async fn object(
    address: &Address,
    (provider, id): (&Name, &ObjectId),
    providers: &Providers,
    sealer: SecretScanner<'_>,
) -> Result<Observed, ApplyError> {
    let key: Key = (provider.clone(), Name::clone(&address.block.ty));
    match read_object(&*providers[provider], &key.1, id).await {
        Ok(live) => {
            let schema = schema(providers, &key);
            let sensitive = schema.as_ref().map(|it| it.sensitive()).unwrap_or_default();
            let mut attributes = sealer.seal(&live.attributes, &sensitive, &[]);
            attributes.retain(|name, _| schema.as_ref().is_some_and(|it| !it.is_hidden(name)));
            Ok(Observed::Live(attributes))
        }
        Err(error) if error.kind == Kind::NotFound => Ok(Observed::Gone),
        Err(source) => Err(ApplyError::Unread { address: Box::new(address.clone()), source }),
    }
}
