//! `tacho completions` and `tacho man`: completions of shells and manual pages, made from the definition of the command line.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Args, Command};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::program::NAME;

/// Prints the script with which a shell completes commands and options
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho completions bash > ~/.local/share/bash-completion/completions/tacho
  tacho completions zsh > ~/.zfunc/_tacho        needs ~/.zfunc in fpath before compinit
  tacho completions fish > ~/.config/fish/completions/tacho.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the manual page of a command, or writes the pages of all commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho man sql | man -l -
  tacho man --out /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The command, such as `sql` or `device add` [default: the page of tacho itself]
    #[arg(conflicts_with = "out")]
    command: Vec<String>,
    /// Writes the pages of all commands into DIR, and creates DIR if necessary
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints a completion.
pub(crate) fn complete(args: &CompletionsArgs, mut command: Command) -> anyhow::Result<()> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, NAME, &mut text);
    print(&text)
}

/// Prints a page, or writes all.
pub(crate) fn man(args: &ManArgs, command: Command) -> anyhow::Result<()> {
    if let Some(directory) = &args.out {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
        return clap_mangen::generate_to(command, directory)
            .with_context(|| format!("cannot write the pages into {}", directory.display()));
    }
    let mut page = Vec::new();
    Man::new(found(command, &args.command)?).render(&mut page).context("cannot make the page")?;
    print(&page)
}

/// The command of that name.
fn found(command: Command, names: &[String]) -> anyhow::Result<Command> {
    let mut found = command.version(env!("CARGO_PKG_VERSION"));
    // Gives every subcommand its full name.
    found.build();
    for name in names {
        let known: Vec<_> = found.get_subcommands().map(|below| below.get_name().to_owned()).collect();
        ensure!(!known.is_empty(), "`{NAME} {}` has no commands below it", names.join(" "));
        let Some(next) = found.find_subcommand(name).cloned() else {
            bail!("there is no command {name:?}; known are {}", known.join(", "));
        };
        found = next;
    }
    Ok(found)
}

fn print(text: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text).and_then(|()| out.flush()).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn page_of(names: &[&str]) -> anyhow::Result<String> {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut page = Vec::new();
        Man::new(found(Cli::command(), &names)?).render(&mut page)?;
        Ok(String::from_utf8(page)?)
    }

    #[test]
    fn each_command_has_its_page() {
        assert!(page_of(&[]).unwrap().contains(".TH tacho 1"));
        let page = page_of(&["device", "add"]).unwrap();
        assert!(page.contains(".TH tacho-device-add 1") && page.contains("tacho device add"), "{page}");
        let error = page_of(&["devise"]).unwrap_err().to_string();
        assert!(error.contains("devise") && error.contains("device"), "{error}");
        assert!(page_of(&["sql", "x"]).is_err());
    }

    #[test]
    fn each_shell_completes_each_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            generate(shell, &mut Cli::command(), NAME, &mut text);
            let text = String::from_utf8(text).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(text.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
