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
// [Handler] answers / and the files of the page, and 404 to everything else, so
// it can be what answers the paths that no other front has. Host and Origin are
// left to the server, see package serve.
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
	// Servers says that the external servers' routes are there; without it the
	// page has no list of servers.
	Servers bool
}

const (
	policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

// The types of what pages are made of.
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
			Write(w, http.StatusOK, f.kind, body)
		})
	}
	return mux
}

func read(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // it is embedded
	}
	return body
}

// Write answers with a page or a file of one, which reaches its own origin alone.
func Write(w http.ResponseWriter, status int, kind string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have gone away
}
