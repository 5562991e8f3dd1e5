//! `alluvium.secrets` and `alluvium.connections`.

use arrow::array::ArrayRef;

use super::{lists, texts};
use crate::catalog::Systems;

/// The secrets. Nobody is told their values.
pub(super) fn secrets(systems: &Systems) -> Vec<ArrayRef> {
    let secrets = || systems.secrets.values();
    vec![
        texts(secrets().map(|secret| &secret.name)),
        texts(secrets().map(|secret| &secret.stored)),
        lists(secrets().map(|secret| &secret.hosts)),
    ]
}

/// The connections.
pub(super) fn connections(systems: &Systems) -> Vec<ArrayRef> {
    let connections = || systems.connections.values();
    let options = connections().map(|connection| {
        let options = connection.options.iter();
        let options = options.map(|it| format!("{} = '{}'", it.name, it.value.replace('\'', "''")));
        options.collect::<Vec<_>>().join(", ")
    });
    vec![
        texts(connections().map(|connection| &connection.name)),
        texts(connections().map(|connection| &connection.system.value)),
        texts(options),
    ]
}
