package debug

import (
	_ "embed" // for the files of the page
	"io"
	"net/http"
	"strings"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageScript string
)

// pageSecurityPolicy lets the page load only from its own origin.
const pageSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// PageHandler serves the web page of the debugger at /, with its style sheet and script. If external is nil, the routes of
// external servers are not served, and the page hides its list of servers.
func PageHandler(external *ServerManager) http.Handler {
	mux := http.NewServeMux()
	page := pageHTML
	if external == nil {
		page = strings.Replace(page, `<section id="servers"`, `<section hidden id="servers"`, 1)
	}
	serve := func(path, contentType, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", contentType)
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Security-Policy", pageSecurityPolicy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			_, _ = io.WriteString(w, body) // the client may have closed the connection
		})
	}
	serve("/{$}", "text/html; charset=utf-8", page)
	serve("/page.css", "text/css; charset=utf-8", pageCSS)
	serve("/page.js", "text/javascript; charset=utf-8", pageScript)
	return mux
}
