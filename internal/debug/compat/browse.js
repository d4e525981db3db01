// The script of the pages other than the first one: it lists the routes.

for (const table of document.querySelectorAll("[data-openapi]")) {
  const { paths } = await (await fetch(table.dataset.openapi)).json();
  for (const [path, methods] of Object.entries(paths).sort()) {
    for (const [method, { summary }] of Object.entries(methods)) {
      const row = table.insertRow();
      for (const text of [method.toUpperCase(), path, summary]) row.insertCell().textContent = text;
    }
  }
}
