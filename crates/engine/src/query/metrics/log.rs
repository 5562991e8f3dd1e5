//! `alluvium.log`: the last lines of the log.

use arrow::array::ArrayRef;

use super::some_times;
use crate::log::LogLine;
use crate::query::objects::texts;

/// All of them.
pub(super) fn columns(lines: &[LogLine]) -> Vec<ArrayRef> {
    vec![
        some_times(lines.iter().map(|line| Some(line.at))),
        texts(lines.iter().map(|line| line.level)),
        texts(lines.iter().map(|line| &line.target)),
        texts(lines.iter().map(|line| &line.message)),
        texts(lines.iter().map(|line| &line.fields)),
    ]
}
