//! Permissions of checks and backups, and the answers of a store without files. `tests/e2e` tests checks of real files.

use super::Server;

#[tokio::test]
async fn only_administrators_may_check_and_back_up() {
    let server = Server::start_with(|options| options.public_read = true).await;
    for path in [
        "/api/tacho/check",
        "/api/tacho/backup",
        "/api/tacho/maintenance/flush",
        "/api/tacho/maintenance/compact",
    ] {
        let nobody = server.request("POST", path).send().await;
        assert!(nobody.refusal(401, 10).contains("/api/auth/login"));
        let reader = server.request("POST", path).session(&server.public_session()).send().await;
        assert!(reader.refusal(403, 20).contains("administrator"));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_store_without_files_refuses_checks_and_backups() {
    let server = Server::start().await;
    let backup = server.post("/api/tacho/backup", "").await;
    assert!(backup.refusal(400, 30).contains("no files"));
    for act in ["flush", "compact"] {
        let refused = server.post(&format!("/api/tacho/maintenance/{act}"), "").await;
        assert!(refused.refusal(400, 30).contains(&format!("no files to {act}")));
    }
    let check = server.post("/api/tacho/check", "").await;
    assert_eq!(check.status, 200);
    assert!(check.text().contains("no files to check"), "{}", check.text());
    let wrong = server.post("/api/tacho/backup", "file 1 2").await;
    assert!(wrong.refusal(400, 31).contains("list of a backup"));
    server.stop().await;
}
