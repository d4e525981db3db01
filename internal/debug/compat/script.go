package compat

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the script
	"fmt"
	"net/http"
	"strings"
	"time"
)

//go:embed debug-client.js
var olderJavaScriptClientSource string

// ServeOlderJavaScriptClient serves the older JavaScript client, which connects to the address that it was loaded from.
func ServeOlderJavaScriptClient(w http.ResponseWriter, r *http.Request) {
	address := fmt.Sprintf("const SERVER_URL = %q;", "http://"+r.Host) // localhttp.Guard has checked the host
	body := []byte(strings.Replace(olderJavaScriptClientSource, `const SERVER_URL = "";`, address, 1))
	h := w.Header()
	h.Set("Content-Type", "application/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	h.Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(body)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
