package rest

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"time"
)

//go:embed debug-client.js
var files embed.FS

// script is the older JavaScript client, with the address that it was asked for
// as that of its debugger.
func (a *api) script(w http.ResponseWriter, r *http.Request) {
	body, err := files.ReadFile("debug-client.js")
	if err != nil {
		panic(err) // it is embedded
	}
	address := fmt.Sprintf("const SERVER_URL = %q;", "http://"+r.Host) // a host of this machine
	body = bytes.Replace(body, []byte(`const SERVER_URL = "";`), []byte(address), 1)
	h := w.Header()
	h.Set("Content-Type", "application/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
