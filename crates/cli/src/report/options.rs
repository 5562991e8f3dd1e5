//! The options of `alluvium report`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

/// The arguments of `alluvium report`.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct ReportArgs {
    /// The server: postgresql://[user@]host[:port], or the folder of its socket. PGPASSWORD has the password
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub(super) connect: String,
    /// The view, or the table
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(super) view: String,
    /// For how long the view is watched
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(super) seconds: u32,
    /// The file, which does not exist [default: report.html]
    #[arg(long, value_name = "FILE", default_value = "report.html", hide_default_value = true)]
    pub(super) output: PathBuf,
}
