package rest

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestScript: the JavaScript client is a module with the address of its debugger, and only allowed pages can load it.
func TestScript(t *testing.T) {
	url := newServer(t, Options{}, "http://localhost:3000").URL
	get := func(header ...string) (int, string, http.Header) {
		t.Helper()
		status, body, h := request(t, "GET", url+"/api/debug-client.js", "", header...)
		return status, string(body), h
	}
	status, body, header := get("Origin", "http://localhost:3000")
	if status != 200 || header.Get("Content-Type") != "application/javascript; charset=utf-8" || header.Get("Access-Control-Allow-Origin") != "http://localhost:3000" {
		t.Errorf("%d %v", status, header)
	}
	for _, want := range []string{`const SERVER_URL = "` + url + `";`, "window.cideldill = ", "export { withDebug, withDebugSync, debugCall, debugCallSync,"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in the script", want)
		}
	}
	if status, _, _ := get("If-None-Match", header.Get("ETag")); status != http.StatusNotModified {
		t.Errorf("the same once more: %d", status)
	}
	if _, body, _ := get("Host", "localhost:77"); !strings.Contains(body, `SERVER_URL = "http://localhost:77"`) {
		t.Error("another address of the same debugger is not used")
	}
	for _, foreign := range [][]string{{"Origin", "http://evil.example"}, {"Origin", "http://localhost:4000"}, {"Host", "evil.example"}} {
		if status, body, h := get(foreign...); status != 403 || strings.Contains(body, "SERVER_URL") || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: %d, %d bytes", foreign, status, len(body))
		}
	}
}

// TestScriptInNode runs the JavaScript client against two debuggers if Node is installed: every action, pauses before
// and after, expressions, values.
func TestScriptInNode(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("CI needs node:", err)
	}
	if err != nil {
		t.Skip("there is no node")
	}
	cmd := exec.CommandContext(t.Context(), node, "testdata/client.mjs", newServer(t, Options{}).URL, newServer(t, Options{}).URL)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}
