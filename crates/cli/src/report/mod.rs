//! `alluvium report`: what a server knows of why a view is slow, big or late, in one file that can be given away.
//!
//! [`options`] are its command line. [`contents`] asks the server, [`page`] writes the file, with the time of operators as a [`flame`] graph. [`redacted`] leaves out what is
//! somebody's data: there are no rows, no values of statements, no paths, addresses or names of roles, and no messages of errors.

mod contents;
mod flame;
pub(crate) mod options;
mod page;
mod redacted;

use std::fs::File;
use std::io::Write;

use alluvium_client::{Address, Client, Error};
use tokio::runtime::Builder;

use self::options::ReportArgs;
use crate::console;
use crate::process::status::Status;
use crate::shell::{self, Stop, failed};

/// Writes a report.
pub(crate) fn run(args: &ReportArgs) -> Status {
    shell::status(write(args))
}

fn write(args: &ReportArgs) -> Result<(), Stop> {
    let place = args.output.display();
    if args.output.exists() {
        return Err(failed(
            Some(&place),
            "there is such a file already; name another one by --output",
        ));
    }
    let address: Address = args.connect.parse().map_err(|error| failed(None, error))?;
    let address = address.application_name("alluvium report");
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(None, error))?;
    let page = runtime.block_on(async {
        let client = Client::connect_to(&address).await?;
        contents::page(&client, &args.view, args.seconds).await
    });
    let page = page.map_err(|error: Error| failed(None, error))?;
    let mut file = File::create_new(&args.output).map_err(|error| failed(Some(&place), error))?;
    file.write_all(page.as_bytes()).map_err(|error| failed(Some(&place), error))?;
    console::report(format_args!(
        "{place} has names of relations and columns, and no rows, no values of statements, and no secrets"
    ));
    Ok(())
}
