package compat

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"time"
)

//go:embed debug-client.js browse.html browse.js
var files embed.FS

func readFile(name string) []byte {
	body, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the template is embedded
	}
	return body
}

// serveScript serves the older JavaScript client, which connects to the address that it was loaded from.
func serveScript(w http.ResponseWriter, r *http.Request) {
	body := readFile("debug-client.js")
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
