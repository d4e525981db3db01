//! Drives claudeless with the public API of a Rust SDK for Claude Code alone.
//!
//! CLAUDELESS_BIN is the binary, CLAUDELESS_SCENARIO the scenario. Each check runs in a directory of its own, prints one line
//! and fails the program when it fails; stderr of the CLI must stay empty.

use claude_agents_sdk::{
    query_all, query_result, ClaudeAgentOptions, ClaudeClient, HookCallback, HookEvent,
    HookMatcher, HookOutput, Message, PermissionMode, PermissionResult, SyncHookOutput,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Lines = Arc<Mutex<Vec<String>>>;

struct Place {
    dir: PathBuf,
    stderr: Lines,
}

impl Place {
    fn new(number: usize) -> std::io::Result<Self> {
        let dir =
            std::env::temp_dir().join(format!("interop-rust-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir)?;
        Ok(Place {
            dir,
            stderr: Lines::default(),
        })
    }

    fn options(&self) -> ClaudeAgentOptions {
        let mut options = ClaudeAgentOptions::new().with_model("claude-sonnet-5-5");
        let heard = self.stderr.clone();
        options.cli_path = std::env::var_os("CLAUDELESS_BIN").map(PathBuf::from);
        options.cwd = Some(self.dir.clone());
        options.env.insert(
            "CLAUDE_CONFIG_DIR".into(),
            self.dir.join("config").display().to_string(),
        );
        options.stderr = Some(Arc::new(move |line| heard.lock().unwrap().push(line)));
        options
    }
}

async fn one_shot(place: &Place) -> Outcome {
    let messages = query_all("say hello", Some(place.options())).await?;
    let texts: Vec<String> = messages
        .iter()
        .filter_map(|m| {
            if let Message::Assistant(a) = m {
                Some(a.text())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(texts, ["hello"]);
    let Some(Message::Result(result)) = messages.last() else {
        panic!("the last is {:?}", messages.last())
    };
    assert_eq!(
        (result.subtype.as_str(), result.is_error, result.num_turns),
        ("success", false, 1)
    );
    assert_eq!(result.result.as_deref(), Some("hello"));
    assert!(result.total_cost_usd.is_some());
    assert!(result
        .usage
        .as_ref()
        .is_some_and(|u| u["output_tokens"].is_u64()));
    Ok(())
}

async fn talk(place: &Place) -> Outcome {
    let mut client = ClaudeClient::new(Some(place.options()));
    client.connect().await?;
    let mut sessions = Vec::new();
    for word in ["one", "two"] {
        client.query(&format!("say {word}")).await?;
        let (text, result) = client.receive_response().await?;
        assert_eq!(text, word);
        sessions.push(result.session_id);
    }
    assert_eq!(sessions[0], sessions[1]);
    client.set_model("claude-opus-4-6").await?;
    client.query("which model").await?;
    assert_eq!(client.receive_response().await?.0, "claude-opus-4-6");
    client
        .set_permission_mode(PermissionMode::AcceptEdits)
        .await?;
    client.query("write a.txt kept").await?;
    client.receive_response().await?;
    assert_eq!(std::fs::read_to_string(place.dir.join("a.txt"))?, "kept\n");
    assert!(client
        .get_server_info()
        .await
        .is_some_and(|info| info["commands"].is_array()));
    assert!(client
        .get_mcp_status()
        .await?
        .to_string()
        .contains("mcpServers"));
    client.disconnect().await?;
    Ok(())
}

async fn permission(place: &Place) -> Outcome {
    let asked = Lines::default();
    let seen = asked.clone();
    let mut options = place.options().with_can_use_tool(move |name, input, _| {
        seen.lock().unwrap().push(name);
        async move {
            match input["content"].as_str() {
                Some("kept\n") => PermissionResult::allow(),
                _ => PermissionResult::deny_with_message("not this one"),
            }
        }
    });
    options
        .extra_args
        .insert("permission-prompt-tool".into(), Some("stdio".into())); // the SDK leaves that to its user
    let mut client = ClaudeClient::new(Some(options));
    client.connect().await?;
    client.query("write a.txt kept").await?;
    let text = client.receive_response().await?.0;
    assert!(text.starts_with("done: "), "{text}");
    client.query("write b.txt lost").await?;
    assert_eq!(client.receive_response().await?.0, "refused: not this one");
    client.disconnect().await?;
    assert_eq!(*asked.lock().unwrap(), ["Write", "Write"]);
    assert!(place.dir.join("a.txt").exists() && !place.dir.join("b.txt").exists());
    Ok(())
}

// What this SDK sends of hooks is not what the real CLI reads, which refuses it in these words too.
async fn hooks(place: &Place) -> Outcome {
    let hook: HookCallback =
        Arc::new(|_, _, _| Box::pin(async { HookOutput::Sync(SyncHookOutput::default()) }));
    let matcher = HookMatcher {
        matcher: Some("Bash".into()),
        hooks: vec![hook],
        timeout: None,
    };
    let mut options = place.options();
    options.hooks = Some(HashMap::from([(HookEvent::PreToolUse, vec![matcher])]));
    let refusal = ClaudeClient::new(Some(options))
        .connect()
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refusal.contains("carrying hookCallbackIds arrays"),
        "{refusal}"
    );
    Ok(())
}

async fn refused(place: &Place) -> Outcome {
    let (_, result) = query_result("break", Some(place.options())).await?;
    assert!(result.is_error);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let places: Vec<Place> = (0..5).map(Place::new).collect::<Result<_, _>>()?;
    one_shot(&places[0]).await?;
    println!("ok a prompt and its messages");
    talk(&places[1]).await?;
    println!("ok several prompts, and what a host may ask");
    permission(&places[2]).await?;
    println!("ok a host that is asked");
    hooks(&places[3]).await?;
    println!("ok hooks that are none");
    refused(&places[4]).await?;
    println!("ok an API that refuses");
    for place in &places {
        assert!(
            place.stderr.lock().unwrap().is_empty(),
            "on stderr: {:?}",
            place.stderr.lock().unwrap()
        );
        std::fs::remove_dir_all(&place.dir)?;
    }
    Ok(())
}
