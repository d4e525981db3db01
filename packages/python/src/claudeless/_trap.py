"""A server for clients that do not use the scripted claude: it refuses requests and explains which options to pass."""

from __future__ import annotations

import functools
import json
import threading
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ADVICE = "pass options=claude.options(…) to the Agent SDK, or cli_path=claude.path; a client of the Messages API takes base_url=claude.base_url"

journals: dict[str, Path] = {}
"""The journal of each open claude, by the name of its directory."""
_told: set[tuple[str, str]] = set()


class Handler(BaseHTTPRequestHandler):
    """Refuses every request, and writes the finding G01 into the journal of the claude whose base URL it is."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        name, agent = self.path.split("/")[1], self.headers.get("User-Agent") or "a program without a name"
        what = "a real claude was started instead of claudeless" if agent.startswith("claude-cli/") else "a program other than claude used the base URL that is reserved for claude"
        text = f"{what}: {agent}"
        if self.command != "HEAD" and name in journals and (name, agent) not in _told:
            _told.add((name, agent))
            record(journals[name], text)
        message = f"claudeless: G01: {text}; {ADVICE}"
        body = json.dumps({"type": "error", "error": {"type": "permission_error", "message": message}}).encode()
        self.send_response(403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Should-Retry", "false")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = do_OPTIONS = answer

    def log_message(self, format: str, *args: object) -> None:
        """Nothing goes to stderr."""


def record(journal: Path, text: str) -> None:
    """Appends the finding to a journal, in one write."""
    now = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
    line = {"time": now, "pid": 0, "session_id": "", "type": "finding", "id": "G01", "level": "error", "text": text, "advice": ADVICE}
    with journal.open("ab", buffering=0) as file:
        file.write(json.dumps(line).encode() + b"\n")


@functools.cache
def url() -> str:
    """The address of the one server of this process; it ends with the process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"
