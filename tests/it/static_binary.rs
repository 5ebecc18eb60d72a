//! The static binary, where one has been built: `SKILLS_RUNNER_STATIC` names it.

use std::process::Command;

use crate::harness::{Reply, Server, Test};

/// It needs nothing around it: an empty folder as its whole world, and an
/// endpoint by the name `localhost`, for which there is no /etc/hosts.
#[test]
fn it_runs_in_an_empty_chroot() {
    let Some(binary) = std::env::var_os("SKILLS_RUNNER_STATIC") else {
        println!("skipped: SKILLS_RUNNER_STATIC names no binary");
        return;
    };
    let test = Test::new().folder("world");
    let world = test.path("world");
    std::fs::copy(binary, world.join("skills-runner")).unwrap();
    let server = Server::start([Reply::text("from the void")]);
    let output = Command::new("chroot")
        .arg(&world)
        .args(["/skills-runner", "-n", "hi"])
        .env_clear()
        .env(
            "LLM_API_BASE_URL",
            format!("http://localhost:{}/v1", server.port()),
        )
        .env("LLM_MODEL_NAME", "m")
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("Operation not permitted") {
        println!("skipped: chroot needs root");
        return;
    }
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "from the void\n",
        "{stderr}"
    );
    assert!(output.status.success());
    server.finish();
}
