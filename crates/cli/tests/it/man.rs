//! `alluvium man`: man pages.

use crate::shell::run;

/// The subcommands, as `alluvium --help` lists them.
fn subcommands() -> Vec<String> {
    let help = run(&["--help"]).output;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names = commands.filter(|line| !line.starts_with("    "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_man_page_names_each_subcommand_and_each_has_a_page() {
    let all = run(&["man"]);
    assert_eq!((all.status, all.errors.as_str()), (Some(0), ""));
    let version = env!("CARGO_PKG_VERSION");
    let title = format!(".TH alluvium 1  \"alluvium {version}\"");
    assert!(all.output.contains(&title), "{}", all.output);
    let subcommands = subcommands();
    assert!(subcommands.len() > 10, "{subcommands:?}");
    for name in subcommands.iter().filter(|name| *name != "help") {
        assert!(all.output.contains(&format!("alluvium\\-{name}(1)")), "{name}");
        let page = run(&["man", name]);
        assert_eq!((page.status, page.errors.as_str()), (Some(0), ""));
        let title = format!(".TH alluvium-{name} 1  \"alluvium {version}\"");
        assert!(page.output.contains(&title), "{}", page.output);
    }
    let unknown = run(&["man", "walk"]);
    assert_eq!((unknown.status, unknown.output.as_str()), (Some(2), ""));
    let error = "error: there is no command \"walk\"\n";
    assert!(unknown.errors.starts_with(error), "{}", unknown.errors);
}
