// Package page serves the hub as a live web page. Its files are embedded and
// need no build step.
//
// The page connects only to its own origin, which its Content-Security-Policy
// enforces, and shows only the state of the hub, never a file that a client
// names. It uses the routes of package rest, in particular /api/events, and must
// be served together with them. The older pages that it links to are in package
// compat.
//
// # Mounting
//
// [Handler] answers / and the files of the page, and 404 to everything else, so it
// can serve as the fallback handler behind the other front ends. The server checks
// Host and Origin, see package serve.
package page

import (
	"bytes"
	"embed"
	"net/http"
)

//go:embed page.html page.css page.js
var files embed.FS

// Options configure a Handler. The zero value works.
type Options struct {
	// Servers says whether the routes of external servers are served. Without them
	// the page shows no list of servers.
	Servers bool
}

const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// The content types of the pages.
const (
	HTML   = "text/html; charset=utf-8"
	Script = "text/javascript; charset=utf-8"
)

// Handler answers the paths of the pages.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for path, f := range map[string]struct{ name, kind string }{
		"/{$}":      {"page.html", HTML},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", Script},
	} {
		body := read(f.name)
		if !o.Servers {
			body = bytes.Replace(body, []byte(`<section id="servers"`), []byte(`<section hidden id="servers"`), 1)
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			WritePage(w, http.StatusOK, f.kind, body)
		})
	}
	return mux
}

func read(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the file is embedded, so this cannot happen
	}
	return body
}

// WritePage answers with a page, or a file of one, that may load only from its own
// origin.
func WritePage(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have closed the connection
}
