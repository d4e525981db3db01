package debug

import (
	"bytes"
	"embed"
	"net/http"
)

//go:embed page.html page.css page.js
var pageFiles embed.FS

// PageOptions configure [PageHandler]. The zero value works.
type PageOptions struct {
	// Servers is set if the routes of external servers are served. Otherwise the page hides its list of servers.
	Servers bool
}

const (
	pageSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// The content types of the pages.
const (
	HTMLContentType   = "text/html; charset=utf-8"
	ScriptContentType = "text/javascript; charset=utf-8"
)

// PageHandler handles the paths of the pages.
func PageHandler(o PageOptions) http.Handler {
	mux := http.NewServeMux()
	for path, f := range map[string]struct{ name, kind string }{
		"/{$}":      {"page.html", HTMLContentType},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", ScriptContentType},
	} {
		body := readPageFile(f.name)
		if !o.Servers {
			body = bytes.Replace(body, []byte(`<section id="servers"`), []byte(`<section hidden id="servers"`), 1)
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			WritePage(w, http.StatusOK, f.kind, body)
		})
	}
	return mux
}

func readPageFile(name string) []byte {
	body, err := pageFiles.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded, so reading it cannot fail
	}
	return body
}

// WritePage responds with a page or one of its files. A page may load only from its own origin.
func WritePage(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", pageSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have closed the connection
}
