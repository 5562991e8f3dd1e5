//! `alluvium demo`: the program of the tutorial, with its data, from the executable itself.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Instant;

use super::{Packed, unpack};
use crate::args::{DemoArgs, RunArgs};
use crate::console;
use crate::process::status::Status;
use crate::process::temporary::Temporary;
use crate::run;
use crate::shell::{self, Stop, failed};

/// The program's name.
const PROGRAM: &str = "flights.sql";

/// The program and its data: copies of the files in `docs/tutorial`, because a package has files of its own folder only.
const FILES: [Packed<'_>; 5] = [
    (PROGRAM, include_bytes!("../../demo/flights.sql")),
    ("data/airlines.csv.gz", include_bytes!("../../demo/data/airlines.csv.gz")),
    ("data/flights.csv.gz", include_bytes!("../../demo/data/flights.csv.gz")),
    ("data/planes.csv.gz", include_bytes!("../../demo/data/planes.csv.gz")),
    ("data/weather.csv.gz", include_bytes!("../../demo/data/weather.csv.gz")),
];

/// Runs the program in a temporary directory, or in one that is kept. The exit status is that of the shell.
pub(crate) fn run(DemoArgs { keep }: DemoArgs) -> Status {
    shell::status(match keep {
        Some(directory) => keep_and_show(&directory),
        None => show_and_remove(),
    })
}

fn show_and_remove() -> Result<(), Stop> {
    let directory = Temporary::new("alluvium-demo-")
        .map_err(|error| failed(Some(&std::env::temp_dir().display()), error))?;
    show(directory.path())?;
    console::report(
        "Change the program and run it again: alluvium demo --keep flights\n\
         Begin a program of your own: alluvium init orders",
    );
    Ok(())
}

fn keep_and_show(directory: &Path) -> Result<(), Stop> {
    let what = directory.display();
    match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(failed(Some(&what), "the directory is not empty")),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(Some(&what), error)),
    }
    show(directory)?;
    let program = directory.join(PROGRAM);
    console::report(format_args!(
        "Change the program and run it again: alluvium run {}",
        program.display()
    ));
    Ok(())
}

/// Writes the files to a directory, and runs the program there.
fn show(directory: &Path) -> Result<(), Stop> {
    console::report(
        "The tutorial: 20,938 flights out of New York in January 2013 and 13 views over them. Eleven queries of the \
         views come first, then corrections of the data, then the same queries.",
    );
    let start = Instant::now();
    unpack(directory, &FILES)?;
    run::to_the_end(&RunArgs::of(directory.join(PROGRAM)))?;
    let seconds = start.elapsed().as_secs_f64();
    console::report(format_args!("{PROGRAM} has run in {seconds:.1} s."));
    Ok(())
}
