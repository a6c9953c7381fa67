//! The same suite while the service differs from its documents as the real one does.

use provider_port::{Kind, Provider as _};

use crate::suite::run;
use crate::support::Service;

#[tokio::test]
async fn each_quirk_by_itself() {
    for quirk in [
        "shuffled-lists",
        "null-as-empty",
        "server-defaults",
        "fb-suffix",
        "bound-templates-hidden",
        "list-doubles-one",
        "created-201",
        "no-body",
    ] {
        run(&Service::with_quirks(quirk).await).await.unwrap_or_else(|e| panic!("{quirk}: {e}"));
    }
}

#[tokio::test]
async fn many_quirks_at_once() {
    let quirks = "shuffled-lists,null-as-empty,server-defaults,fb-suffix,bound-templates-hidden,\
                  list-doubles-one,created-201,no-body";
    run(&Service::with_quirks(quirks).await).await.unwrap();
}

#[tokio::test]
async fn a_retired_version_says_so() {
    let service = Service::with_quirks("gone-410").await;
    let error = service.provider().list("network_volume").await.unwrap_err();
    assert_eq!(error.kind, Kind::Rejected);
    let help = error.help.unwrap_or_default();
    assert!(help.contains("this version of the API was retired"), "{help}");
}
