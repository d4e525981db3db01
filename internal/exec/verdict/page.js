"use strict";
// Shows the runs of a report. run.go writes the data.
(() => {
  const runs = JSON.parse(document.getElementById("data").textContent) || [];
  const make = (tag, name, text) => {
    const e = document.createElement(tag);
    if (name) e.className = name;
    if (text !== undefined) e.textContent = text;
    return e;
  };
  const duration = (ms) => (ms >= 1000 ? (ms / 1000).toFixed(2) + " s" : ms >= 10 ? ms.toFixed(0) + " ms" : ms.toFixed(1) + " ms");
  const bad = (event) => event.status === "error" || event.status === "denied";
  const kinds = [["prompt", "prompts"], ["rule", "rules"], ["model", "model"], ["tool", "tools"], ["result", "results"], ["api", "API"], ["context", "context"], ["process", "process"], ["other", "other"]];

  // rows are all events with their elements, for the filter.
  const rows = [];
  const list = document.getElementById("runs");
  const present = new Set();

  function showEvent(run, event) {
    const row = make("details", "event " + event.kind + (bad(event) ? " " + event.status : ""));
    row.id = event.id;
    const head = make("summary");
    head.append(make("span", "at", "+" + duration(Math.max(0, event.at - run.start))), make("span", "kind", event.kind), make("span", "title", event.title));
    const right = [bad(event) ? (event.status === "denied" ? "denied" : "failed") : "", event.ms ? duration(event.ms) : "", event.file ? event.file.split("/").pop() + ":" + event.line : ""].filter(Boolean).join("  ");
    head.append(make("span", "soft", right));
    row.append(head);
    row.addEventListener("toggle", () => { if (row.open) showParts(row, event); });
    return row;
  }

  // showParts adds the details of an event when it is opened for the first time.
  function showParts(row, event) {
    if (row.children.length > 1) return;
    const parts = make("div", "parts");
    if (event.file) parts.append(make("p", "place", event.file + ":" + event.line));
    for (const p of event.parts) {
      const part = make("div", "part");
      part.append(make("b", "", p.name), make("pre", "", p.text));
      parts.append(part);
    }
    if (!parts.children.length) parts.append(make("p", "soft", "No further details were recorded."));
    row.append(parts);
  }

  function showStream(name, text) {
    const stream = make("details", "stream");
    stream.append(make("summary", "", name + " (" + text.length.toLocaleString("en") + " characters)"));
    stream.addEventListener("toggle", () => { if (stream.open && stream.children.length === 1) stream.append(make("pre", "", text)); });
    return stream;
  }

  function showRun(run) {
    const box = make("details", "run" + (run.failed ? " failed" : ""));
    box.id = run.id;
    const head = make("summary");
    head.append(make("b", "", run.title || "claude"), make("span", run.failed ? "error" : "soft", run.outcome));
    head.append(make("span", "soft", [run.pid ? "process " + run.pid : "", duration(run.end - run.start), run.events.length + " events"].filter(Boolean).join(", ")));
    box.append(head);
    const body = make("div", "body");
    const facts = make("dl");
    for (const f of run.facts) facts.append(make("dt", "", f.name), make("dd", "", f.text));
    body.append(facts);
    if (run.stderr) body.append(showStream("stderr", run.stderr));
    if (run.stdout) body.append(showStream("stdout", run.stdout));
    const events = make("div", "events");
    for (const event of run.events) {
      present.add(event.kind);
      const row = showEvent(run, event);
      rows.push({ row, box, event, text: (event.title + " " + event.parts.map((p) => p.text).join(" ")).toLowerCase() });
      events.append(row);
    }
    body.append(events);
    box.append(body);
    return box;
  }

  function showTime() {
    if (!runs.length) return;
    const first = Math.min(...runs.map((r) => r.start));
    const last = Math.max(...runs.map((r) => r.end), first + 1);
    const percent = (ms) => (100 * (ms - first)) / (last - first) + "%";
    const bars = document.getElementById("bars");
    for (const run of runs) {
      const row = make("button", "bar-row");
      row.type = "button";
      row.append(make("span", "bar-name", run.title || run.id));
      const lane = make("span", "lane");
      const bar = make("span", run.failed ? "error" : "");
      bar.style.left = percent(run.start);
      bar.style.width = (100 * (run.end - run.start)) / (last - first) + "%";
      if (run.failed) bar.style.opacity = ".3";
      lane.append(bar);
      const step = Math.max(1, Math.ceil(run.events.length / 300));
      run.events.forEach((event, i) => {
        if (!bad(event) && (event.kind !== "tool" && event.kind !== "prompt" || i % step)) return;
        const tick = make("span", "tick" + (bad(event) ? " error" : ""));
        tick.style.left = percent(event.at);
        tick.style.width = event.ms ? (100 * event.ms) / (last - first) + "%" : "2px";
        tick.title = event.kind + ": " + event.title;
        lane.append(tick);
      });
      row.append(lane);
      row.addEventListener("click", () => reveal(run.id));
      bars.append(row);
    }
    bars.append(make("p", "soft", duration(last - first) + " in total"));
    document.getElementById("time").hidden = false;
  }

  // reveal opens a run or an event and scrolls to it.
  function reveal(id) {
    const target = document.getElementById(id);
    if (!target || target.tagName !== "DETAILS") return;
    const box = target.closest(".run");
    box.open = true;
    target.open = true;
    target.scrollIntoView({ block: "center" });
  }

  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const off = new Set();
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = words.length > 0 || only.checked;
    let found = 0;
    const hits = new Set();
    for (const r of rows) {
      const shown = !off.has(r.event.kind) && (!only.checked || bad(r.event)) && words.every((w) => r.text.includes(w));
      r.row.hidden = !shown;
      if (shown) { found++; hits.add(r.box); }
    }
    for (const box of list.children) {
      box.hidden = active && !hits.has(box);
      if (active && hits.has(box)) box.open = true;
    }
    document.getElementById("found").textContent = active || off.size ? found + " of " + rows.length + " events" : "";
  }

  for (const run of runs) list.append(showRun(run));
  const boxes = document.getElementById("kinds");
  for (const [kind, name] of kinds) {
    if (!present.has(kind)) continue;
    const label = make("label"), check = make("input");
    check.type = "checkbox";
    check.checked = true;
    check.addEventListener("change", () => { if (check.checked) off.delete(kind); else off.add(kind); filter(); });
    label.append(check, " " + name);
    boxes.append(label);
  }
  document.getElementById("filter").hidden = rows.length === 0;
  document.getElementById("filter").addEventListener("submit", (e) => e.preventDefault());
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  showTime();
  const opened = runs.filter((r) => r.failed);
  for (const run of opened.length ? opened.slice(0, 3) : runs.slice(0, 1)) document.getElementById(run.id).open = true;
  const follow = () => reveal(decodeURIComponent(location.hash.slice(1)));
  addEventListener("hashchange", follow);
  if (location.hash) follow();
})();
