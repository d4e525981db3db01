// The script of the pages other than the first one: it evaluates expressions in
// an open session and lists the routes.

const field = (form, name) => form.querySelector(`[data-field="${name}"]`);

for (const form of document.querySelectorAll("form[data-session]")) {
  const { expr } = form.elements, button = form.querySelector("button");
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    if (!expr.value.trim()) return;
    button.disabled = true;
    const answer = await send(`/api/repl/${encodeURIComponent(form.dataset.session)}/eval`, { expr: expr.value });
    if (answer === undefined) {
      location.reload();
      return;
    }
    const p = field(form, "error");
    p.hidden = false;
    p.textContent = answer;
    button.disabled = false;
  });
  expr.addEventListener("keydown", (e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.requestSubmit();
  });
  button.disabled = false;
  expr.focus();
}

// send returns the error message, or undefined if the request succeeded.
async function send(path, body) {
  try {
    const r = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const answer = await r.json();
    return r.ok ? undefined : (answer.message ?? answer.error);
  } catch (e) {
    return e.message;
  }
}

for (const table of document.querySelectorAll("[data-openapi]")) {
  const { paths } = await (await fetch(table.dataset.openapi)).json();
  for (const [path, methods] of Object.entries(paths).sort()) {
    for (const [method, { summary }] of Object.entries(methods)) {
      const row = table.insertRow();
      for (const text of [method.toUpperCase(), path, summary]) row.insertCell().textContent = text;
    }
  }
}
