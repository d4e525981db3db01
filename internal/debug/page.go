package debug

import (
	_ "embed" // for the files of the page
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

const pageSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// The content types of the pages.
const (
	HTMLContentType   = "text/html; charset=utf-8"
	ScriptContentType = "text/javascript; charset=utf-8"
)

// PageHandler serves the web page of the debugger at /, with its style sheet and script. If external is nil, the routes of
// external servers are not served, and the page hides its list of servers.
func PageHandler(external *ServerManager) http.Handler {
	mux := http.NewServeMux()
	page := pageHTML
	if external == nil {
		page = strings.Replace(page, `<section id="servers"`, `<section hidden id="servers"`, 1)
	}
	serve := func(path, kind, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { WritePage(w, http.StatusOK, kind, []byte(body)) })
	}
	serve("/{$}", HTMLContentType, page)
	serve("/page.css", "text/css; charset=utf-8", pageCSS)
	serve("/page.js", ScriptContentType, pageScript)
	return mux
}

// WritePage responds with a page or one of its files. Its security policy lets a page load only from its own origin.
func WritePage(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", pageSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have closed the connection
}
