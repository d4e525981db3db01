"use strict";
// Shows the runs of a report. html_run.go writes the data.
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
  const kinds = [["prompt", "prompts"], ["rule", "rules"], ["model", "model"], ["tool", "tools"], ["hook", "hooks"], ["result", "results"], ["api", "API"], ["context", "context"], ["process", "process"], ["other", "other"]];

  // Rows are made in chunks: those of a small report at once, those of a large one when they come near the screen. Until then
  // a chunk is an empty box of about the height of its rows.
  const chunkSize = 100, rowHeight = 31;
  const total = runs.reduce((sum, run) => sum + run.events.length, 0);
  const items = []; // {run, event, box, chunk, row, shown, text} of all events
  const byID = new Map();
  const present = new Set();
  const streams = []; // {box, element, text}
  const list = document.getElementById("runs");
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) fill(entry.target.chunk);
  }, { rootMargin: "1500px 0px" });

  // commandTitle shortens the command of a run to what distinguishes runs.
  function commandTitle(run) {
    const line = (run.facts.find((f) => f.name === "command")?.text || "claude").replace(/^[^ ']*\//, "");
    return line.length > 160 ? line.slice(0, 160) + "…" : line;
  }

  // read returns the object that a text is in JSON; null = it is none.
  function read(text) {
    if (!text.startsWith("{")) return null;
    try { return JSON.parse(text); } catch { return null; } // a text that was cut
  }

  // callTitle adds the most important input to the name of a tool.
  function callTitle(event) {
    if (event.kind !== "tool") return event.title;
    const input = (event.parts[0]?.name === "input" && read(event.parts[0].text)) || {};
    const name = ["command", "file_path", "pattern", "path", "url", "query", "description", "prompt"].find((name) => typeof input[name] === "string");
    const text = name ? input[name] : Object.keys(input).length ? JSON.stringify(input) : "";
    return event.title + "  " + (event.status === "open" ? "(no result)  " : "") + text.split("\n")[0].slice(0, 160);
  }

  function showEvent(run, event) {
    const row = make("details", "event " + event.kind + (bad(event) ? " " + event.status : ""));
    row.id = event.id;
    const head = make("summary");
    head.append(make("span", "at", "+" + duration(Math.max(0, event.at - run.start))), make("span", "kind", event.kind), make("span", "title", callTitle(event)));
    const right = [bad(event) ? (event.status === "denied" ? "denied" : "failed") : "", event.ms ? duration(event.ms) : "", event.file ? event.file.split("/").pop() + ":" + event.line : ""].filter(Boolean).join("  ");
    head.append(make("span", "soft", right));
    row.append(head);
    row.addEventListener("toggle", () => {
      if (!row.open) return;
      showParts(row, event);
      history.replaceState(null, "", "#" + event.id); // the address of the page leads to this event
    });
    return row;
  }

  // showParts adds the details of an event when it is opened for the first time. Short texts share a line with their name,
  // and so do the values of an object.
  function showParts(row, event) {
    if (row.children.length > 1) return;
    const parts = make("div", "parts");
    let short = null;
    const place = event.file ? [{ name: "place", text: event.file + ":" + event.line }] : [];
    for (const p of place.concat(event.parts)) {
      if (p.text.length <= 120 && !p.text.includes("\n")) {
        if (!short) parts.append((short = make("dl")));
        short.append(make("dt", "", p.name), make("dd", "", p.text));
        continue;
      }
      short = null;
      const part = make("div", "part");
      part.append(make("b", "", p.name));
      const object = read(p.text);
      if (object) {
        const values = make("dl");
        for (const [key, value] of Object.entries(object)) values.append(make("dt", "", key), make("dd", "", typeof value === "string" ? value : JSON.stringify(value, null, 2)));
        part.append(values);
      } else part.append(make("pre", "", p.text));
      parts.append(part);
    }
    if (!parts.children.length) parts.append(make("p", "soft", "No further details were recorded."));
    row.append(parts);
  }

  function showStream(box, name, text) {
    const element = make("details", "stream");
    element.append(make("summary", "", name + " (" + text.length.toLocaleString("en") + " characters)"));
    element.addEventListener("toggle", () => { if (element.open && element.children.length === 1) element.append(make("pre", "", text)); });
    streams.push({ box, element, text: text.toLowerCase() });
    return element;
  }

  function showRun(run) {
    const box = make("details", "run" + (run.failed ? " failed" : ""));
    box.id = run.id;
    const head = make("summary");
    head.append(make("b", "", run.title), make("span", run.failed ? "error" : "soft", run.outcome));
    head.append(make("span", "soft", [run.pid ? "process " + run.pid : "", duration(run.end - run.start), run.events.length + " events"].filter(Boolean).join(", ")));
    box.append(head);
    const body = make("div", "body");
    const facts = make("dl");
    for (const f of run.facts) facts.append(make("dt", "", f.name), make("dd", "", f.text));
    body.append(facts);
    if (run.stderr) body.append(showStream(box, "stderr", run.stderr));
    if (run.stdout) body.append(showStream(box, "stdout", run.stdout));
    const events = make("div", "events");
    let chunk = null;
    run.events.forEach((event, i) => {
      present.add(event.kind);
      if (i % chunkSize === 0) {
        chunk = { element: make("div", "chunk"), items: [], filled: false };
        chunk.element.chunk = chunk;
        events.append(chunk.element);
      }
      const item = { run, event, box, chunk, row: null, shown: true, text: "" };
      items.push(item);
      byID.set(event.id, item);
      chunk.items.push(item);
    });
    body.append(events);
    box.append(body);
    return box;
  }

  // fill shows the rows of a chunk that the filter has left.
  function fill(chunk) {
    if (chunk.filled) return;
    chunk.filled = true;
    near.unobserve(chunk.element);
    chunk.element.style.height = "";
    chunk.element.replaceChildren(...chunk.items.filter((item) => item.shown).map((item) => (item.row ||= showEvent(item.run, item.event))));
  }

  // arrange prepares a chunk to be shown as the filter has left it.
  function arrange(chunk) {
    const height = chunk.items.reduce((n, item) => n + item.shown, 0) * rowHeight;
    chunk.element.hidden = height === 0;
    chunk.element.style.height = height + "px";
    chunk.element.style.containIntrinsicSize = "auto " + height + "px";
    chunk.element.replaceChildren();
    chunk.filled = false;
    near.unobserve(chunk.element); // an observer reports what it observes anew
    if (total <= 1000) fill(chunk);
    else near.observe(chunk.element);
  }

  // The time line: a lane for each run, with its calls, prompts and problems.
  const first = Math.min(...runs.map((r) => r.start));
  const last = Math.max(...runs.map((r) => r.end), first + 1);
  const bars = document.getElementById("bars");
  let range = null; // [from, to] in milliseconds; null = everything
  function showTime() {
    if (!runs.length) return;
    const percent = (ms) => (100 * (ms - first)) / (last - first) + "%";
    const axis = make("div", "bar-row axis"), scale = make("span", "lane");
    for (let i = 0; i <= 4; i++) {
      const mark = make("span", "", duration(((last - first) * i) / 4));
      mark.style.left = 25 * i + "%";
      scale.append(mark);
    }
    axis.append(make("span"), scale);
    bars.append(axis);
    const slots = Math.max(20, Math.min(400, Math.floor(3000 / runs.length))); // ticks in a lane
    for (const run of runs) {
      const row = make("div", "bar-row"), name = make("button", "bar-name", run.title);
      name.type = "button";
      name.addEventListener("click", () => reveal(run.id));
      const lane = make("span", "lane");
      lane.dataset.run = run.id;
      const bar = make("span", run.failed ? "failed" : "");
      bar.style.left = percent(run.start);
      bar.style.width = (100 * (run.end - run.start)) / (last - first) + "%";
      lane.append(bar);
      const taken = new Set();
      const marked = run.events.filter((event) => bad(event) || event.kind === "tool" || event.kind === "prompt");
      for (const event of marked.filter(bad).concat(marked.filter((event) => !bad(event)))) {
        const slot = Math.floor((slots * (event.at - first)) / (last - first));
        if (taken.has(slot) && event.ms * slots < last - first) continue;
        taken.add(slot);
        const tick = make("span", "tick" + (bad(event) ? " error" : ""));
        tick.style.left = percent(event.at);
        tick.style.width = event.ms ? (100 * event.ms) / (last - first) + "%" : "3px";
        tick.title = event.kind + ": " + event.title;
        tick.dataset.event = event.id;
        lane.append(tick);
      }
      row.append(name, lane);
      bars.append(row);
    }
    document.getElementById("time").hidden = false;
  }

  // A click on the time line shows the event or run; dragging leaves only what happened in that time.
  let drag = null; // {lane, x, moved}
  const timeAt = (x, lane) => {
    const r = lane.getBoundingClientRect();
    return first + (last - first) * Math.min(1, Math.max(0, (x - r.left) / r.width));
  };
  bars.addEventListener("pointerdown", (e) => {
    const lane = e.target.closest(".lane");
    if (lane && e.button === 0) drag = { lane, x: e.clientX, moved: false };
  });
  addEventListener("pointermove", (e) => {
    if (!drag) return;
    drag.moved ||= Math.abs(e.clientX - drag.x) > 4;
    if (!drag.moved) return;
    getSelection().removeAllRanges();
    select([timeAt(Math.min(drag.x, e.clientX), drag.lane), timeAt(Math.max(drag.x, e.clientX), drag.lane)]);
  });
  addEventListener("pointerup", (e) => {
    const done = drag;
    drag = null;
    if (!done) return;
    if (done.moved) return filter();
    const target = e.target.dataset?.event || done.lane.dataset.run;
    if (target) reveal(target);
  });
  document.getElementById("all").addEventListener("click", () => { select(null); filter(); });
  function select(to) {
    range = to;
    document.getElementById("span").textContent = range ? "Only " + duration(range[0] - first) + " to " + duration(range[1] - first) + " is shown." : "Drag to show only a part.";
    document.getElementById("all").hidden = !range;
    for (const lane of bars.querySelectorAll(".lane")) {
      lane.querySelector(".selected")?.remove();
      if (!range) continue;
      const part = make("span", "selected");
      part.style.left = (100 * (range[0] - first)) / (last - first) + "%";
      part.style.width = (100 * (range[1] - range[0])) / (last - first) + "%";
      lane.append(part);
    }
  }

  // reveal opens a run or an event and scrolls to it.
  function reveal(id) {
    const item = byID.get(id);
    if (item && !item.shown) reset();
    if (item) fill(item.chunk);
    const target = document.getElementById(id);
    if (!target || !target.closest(".run")) return;
    target.closest(".run").hidden = false;
    target.closest(".run").open = true;
    target.open = true;
    target.scrollIntoView({ block: "center" });
    for (const other of document.querySelectorAll(".current")) other.classList.remove("current");
    target.classList.add("current");
  }

  const search = document.getElementById("search");
  const only = document.getElementById("only");
  const off = new Set();
  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = words.length > 0 || only.checked || range !== null;
    let found = 0, changed = new Set();
    const hits = new Set();
    for (const item of items) {
      const e = item.event;
      if (words.length && !item.text) item.text = (e.title + " " + e.parts.map((p) => p.text).join(" ")).toLowerCase();
      const shown = !off.has(e.kind) && (!only.checked || bad(e)) && (!range || (e.at <= range[1] && e.at + e.ms >= range[0])) && words.every((w) => item.text.includes(w));
      if (shown) { found++; hits.add(item.box); }
      if (shown !== item.shown) { item.shown = shown; changed.add(item.chunk); }
    }
    for (const chunk of changed) arrange(chunk);
    let outputs = 0;
    for (const s of streams) {
      const hit = words.length > 0 && words.every((w) => s.text.includes(w));
      s.element.classList.toggle("hit", hit);
      if (hit) { outputs++; hits.add(s.box); }
    }
    for (const box of list.children) {
      box.hidden = active && !hits.has(box);
      if (active && hits.has(box)) box.open = true;
    }
    const text = found + " of " + items.length + " events" + (outputs ? ", output of " + outputs + " streams" : "");
    document.getElementById("found").textContent = active || off.size ? text : "";
  }
  function reset() {
    search.value = "";
    only.checked = false;
    off.clear();
    for (const check of document.querySelectorAll("#kinds input")) check.checked = true;
    select(null);
    filter();
  }

  for (const run of runs) {
    run.title ||= commandTitle(run);
    list.append(showRun(run));
  }
  const chunks = new Set(items.map((item) => item.chunk));
  for (const chunk of chunks) arrange(chunk);
  addEventListener("beforeprint", () => { for (const chunk of chunks) fill(chunk); });
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
  document.getElementById("filter").hidden = items.length === 0;
  document.getElementById("filter").addEventListener("submit", (e) => e.preventDefault());
  search.addEventListener("input", filter);
  only.addEventListener("change", filter);
  // The arrow keys go from one event to the next.
  list.addEventListener("keydown", (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    const row = step && e.target.tagName === "SUMMARY" ? e.target.closest(".event") : null;
    let at = row ? items.indexOf(byID.get(row.id)) + step : -1;
    while (items[at] && !items[at].shown) at += step;
    if (!items[at]) return;
    e.preventDefault();
    fill(items[at].chunk);
    items[at].box.open = true;
    items[at].row.querySelector("summary").focus();
  });
  showTime();
  const opened = runs.filter((r) => r.failed);
  for (const run of opened.length ? opened.slice(0, 3) : runs.slice(0, 1)) document.getElementById(run.id).open = true;
  const follow = () => reveal(decodeURIComponent(location.hash.slice(1)));
  addEventListener("hashchange", follow);
  for (const link of document.querySelectorAll('a[href^="#run-"]')) link.addEventListener("click", () => reveal(link.hash.slice(1))); // again, if it is the address already
  if (location.hash) follow();
})();
