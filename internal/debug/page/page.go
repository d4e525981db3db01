// Package page is the hub for people: one web page without a build step, made
// of one HTML, one style sheet and one script, all embedded.
//
// Its one invariant: the page reaches nothing but its own origin, which its
// Content-Security-Policy enforces. It is an ordinary client of the routes of
// package rest, /api/events above all, and must be served beside them; nothing
// here knows the hub.
//
// # Mounting
//
// [Handler] answers /, /page.css and /page.js, and 404 to everything else, so it
// can be what answers the paths that no other front has. Host and Origin are
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

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler answers the paths of the page.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	for path, f := range map[string]struct{ name, kind string }{
		"/{$}":      {"page.html", "text/html; charset=utf-8"},
		"/page.css": {"page.css", "text/css; charset=utf-8"},
		"/page.js":  {"page.js", "text/javascript; charset=utf-8"},
	} {
		body, err := files.ReadFile(f.name)
		if err != nil {
			panic(err) // it is embedded
		}
		if !o.Servers {
			body = bytes.Replace(body, []byte(`<section id="servers"`), []byte(`<section hidden id="servers"`), 1)
		}
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Type", f.kind)
			h.Set("Cache-Control", "no-cache")
			h.Set("Content-Security-Policy", policy)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			w.Write(body) //nolint:errcheck // the client went away
		})
	}
	return mux
}
