//! `tacho user`: logins with their roles and passwords, and the key of session tokens; of a running server or of a data
//! directory.

mod users;

use clap::{Args, Subcommand};
use hub::caller::Role;
use hub::registry::{ADMIN_LOGIN, ADMIN_PASSWORD_FILE};
use serde_json::json;

use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::data_directory::registry_access;
use crate::new_password::NewPasswordArgs;
use crate::output::{columns, say};
use model::calendar::seconds_of_millis;
use users::Users;

/// The names of the roles.
const ROLES: [&str; 3] = [Role::Administrator.name(), Role::Viewer.name(), Role::Operator.name()];

/// The subcommands of `tacho user`.
#[derive(Debug, Subcommand)]
pub(crate) enum UserCommand {
    List(ListArgs),
    Add(AddArgs),
    Password(PasswordArgs),
    Role(RoleArgs),
    Delete(DeleteArgs),
    RotateKey(RotateKeyArgs),
}

/// The server or data directory whose users the command is about.
#[derive(Debug, Args)]
struct UsersArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

impl UsersArgs {
    fn open(&self) -> anyhow::Result<Users> {
        Ok(Users(registry_access(&self.server, &self.data.load()?, false)?))
    }
}

/// Lists users with their roles and the times when their passwords were set
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho user list
  tacho user list --json")]
pub(crate) struct ListArgs {
    /// Prints a JSON array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    users: UsersArgs,
}

/// Adds a user
///
/// A viewer can read devices, values and history, receive live updates, and use SQL over HTTP and PostgreSQL's protocol. A
/// viewer cannot change anything, and cannot see access tokens of devices or refused messages. An administrator can do
/// everything. The command asks for the password twice at the terminal, or reads the only line of a file or of standard input.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho user add grafana@example.org
  tacho user add ann@example.org --role administrator
  tacho user add bi@example.org --password-file /run/secrets/bi
  psql -h 127.0.0.1 -U bi@example.org tacho")]
pub(crate) struct AddArgs {
    /// Login of the user, such as name@example.org
    login: String,
    /// Role of the user
    #[arg(long, value_name = "ROLE", value_parser = ROLES, default_value = ROLES[1])]
    role: String,
    #[command(flatten)]
    new_password: NewPasswordArgs,
    #[command(flatten)]
    users: UsersArgs,
}

/// Sets the password of a user and ends the user's sessions
///
/// The user's session tokens become invalid, and the user's WebSockets and PostgreSQL connections end. Without a running
/// server the command needs no login: access to the data directory is enough.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho user password admin@tachograph.local
  tacho user password bi@example.org --password-file /run/secrets/bi")]
pub(crate) struct PasswordArgs {
    /// Login of the user
    login: String,
    #[command(flatten)]
    new_password: NewPasswordArgs,
    #[command(flatten)]
    users: UsersArgs,
}

/// Sets the role of a user and ends the user's sessions
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho user role ann@example.org viewer")]
pub(crate) struct RoleArgs {
    /// Login of the user
    login: String,
    /// Role of the user
    #[arg(value_name = "ROLE", value_parser = ROLES)]
    role: String,
    #[command(flatten)]
    users: UsersArgs,
}

/// Deletes a user and ends the user's sessions. The last administrator cannot be deleted
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho user delete ann@example.org")]
pub(crate) struct DeleteArgs {
    /// Login of the user
    login: String,
    #[command(flatten)]
    users: UsersArgs,
}

/// Replaces the key that signs session tokens, which ends all sessions of all users
///
/// Use this when others may know the key, for example from a copied data directory or backup: with the key they can make
/// session tokens for any user. Passwords and access tokens of devices stay valid. PostgreSQL connections use no session token
/// and stay open.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tacho user rotate-key")]
pub(crate) struct RotateKeyArgs {
    #[command(flatten)]
    users: UsersArgs,
}

/// Runs a subcommand.
pub(crate) fn run(command: &UserCommand) -> anyhow::Result<()> {
    match command {
        UserCommand::List(args) => list(args),
        UserCommand::Add(args) => add(args),
        UserCommand::Password(args) => password(args),
        UserCommand::Role(args) => role(args),
        UserCommand::Delete(args) => delete(args),
        UserCommand::RotateKey(args) => rotate_key(args),
    }
}

fn list(args: &ListArgs) -> anyhow::Result<()> {
    let users = args.users.open()?.list()?;
    if args.json {
        let all = users.iter().map(|user| {
            json!({
                "login": user.login,
                "role": user.role,
                "passwordChanged": seconds_of_millis(user.password_changed_ms),
            })
        });
        return say(serde_json::Value::Array(all.collect()));
    }
    let head = ["LOGIN", "ROLE", "PASSWORD SET"].map(str::to_owned);
    let rows =
        users.into_iter().map(|user| [user.login, user.role, seconds_of_millis(user.password_changed_ms)]);
    let rows: Vec<[String; 3]> = std::iter::once(head).chain(rows).collect();
    columns(&rows, 0..0).iter().try_for_each(say)
}

fn add(args: &AddArgs) -> anyhow::Result<()> {
    let users = args.users.open()?;
    users.add(&args.login, &args.new_password.ask(&args.login)?, &args.role)?;
    say(format_args!("added    {}, {}", args.login, args.role))
}

fn password(args: &PasswordArgs) -> anyhow::Result<()> {
    let users = args.users.open()?;
    users.set_password(&args.login, &args.new_password.ask(&args.login)?)?;
    say(format_args!("changed  the password of {}; the user's sessions have ended", args.login))?;
    if args.login.to_lowercase() == ADMIN_LOGIN {
        say(format_args!(
            "note     {ADMIN_PASSWORD_FILE} of the data directory held the old one and is gone; commands that ask a \
             running server need TACHO_PASSWORD"
        ))?;
    }
    Ok(())
}

fn role(args: &RoleArgs) -> anyhow::Result<()> {
    args.users.open()?.set_role(&args.login, &args.role)?;
    say(format_args!(
        "changed  {} has the role {}; sessions with another role have ended",
        args.login, args.role
    ))
}

fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    args.users.open()?.delete(&args.login)?;
    say(format_args!("deleted  {}; the user's sessions have ended", args.login))
}

fn rotate_key(args: &RotateKeyArgs) -> anyhow::Result<()> {
    args.users.open()?.rotate_session_key()?;
    say("replaced the key of session tokens; all sessions have ended, users log in again")
}
