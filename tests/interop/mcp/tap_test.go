//go:build interop

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A tap is this test binary between a client and a third-party server: it appends the client's messages to a file. Its
// arguments are environment variables.
//
//	INTEROP_TAP=FILE                      the file
//	INTEROP_TAP_SERVER=COMMAND LINE       is started; words have no spaces
//	INTEROP_TAP_LISTEN, INTEROP_TAP_URL   HTTP: the addresses of the tap and of the server; empty means stdio

// runTap runs until its input ends. Over HTTP, it runs forever.
func runTap(file string) error {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	t := &tap{log: log}
	words := strings.Fields(os.Getenv("INTEROP_TAP_SERVER"))
	server := exec.Command(words[0], words[1:]...)
	server.Stdout, server.Stderr = os.Stdout, os.Stderr
	if listen := os.Getenv("INTEROP_TAP_LISTEN"); listen != "" {
		target, err := url.Parse(os.Getenv("INTEROP_TAP_URL"))
		if err != nil {
			return err
		}
		if err := server.Start(); err != nil {
			return err
		}
		proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
		}}
		return http.ListenAndServe(listen, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // the server rejects a truncated body
			r.Body = io.NopCloser(bytes.NewReader(body))
			t.note(r.Method, r.Header, body)
			proxy.ServeHTTP(w, r)
		}))
	}
	stdin, err := server.StdinPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.note("", nil, line)
			if _, err := stdin.Write(line); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	stdin.Close()
	return server.Wait()
}

type tap struct {
	mu  sync.Mutex
	log io.Writer
}

// note writes one line: the HTTP method, the method of the message, its id if it is a string, its MCP headers, and its
// parameters.
func (t *tap) note(method string, header http.Header, body []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var m struct {
		ID     any
		Method string
		Params json.RawMessage
	}
	_ = json.Unmarshal(body, &m) // GET and DELETE have no message
	words := []string{method, m.Method}
	if id, ok := m.ID.(string); ok {
		words = append(words, "id="+id)
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if strings.HasPrefix(name, "Mcp-") {
			words = append(words, name+"="+header.Get(name))
		}
	}
	fmt.Fprintln(t.log, strings.TrimSpace(strings.Join(append(words, string(m.Params)), " ")))
}

// volatilePattern matches the values that differ between two runs of a program.
var volatilePattern = regexp.MustCompile(`"(claudecode/toolUseId|progressToken)":("[^"]*"|\d+)|(Mcp-Session-Id)=\S+`)

// comparableSequence returns a tap's recording in comparable form. The keys of parameters are
// sorted. Concurrent requests (the lists, and over HTTP the GET stream) are in a fixed order.
// Answers to requests of the server are at the end.
func comparableSequence(text string) []string {
	var all, answers []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "POST  ") {
			answers = append(answers, strings.TrimSpace(volatilePattern.ReplaceAllString(line, `$1$3=<id>`)))
			continue
		}
		if head, params, ok := strings.Cut(line, " {"); ok {
			var v any
			if json.Unmarshal([]byte("{"+params), &v) == nil {
				sorted, _ := json.Marshal(v) // it was read from JSON
				line = head + " " + string(sorted)
			}
		}
		all = append(all, volatilePattern.ReplaceAllString(line, `$1$3=<id>`))
	}
	together := func(line string) bool {
		return strings.Contains(line, "/list") && !strings.Contains(line, "list_changed") || strings.HasPrefix(line, "GET")
	}
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && together(all[j]) {
			j++
		}
		slices.Sort(all[i:j])
		i = max(j, i+1)
	}
	return append(all, answers...)
}

// methodNames returns only the methods of a sequence.
func methodNames(all []string) string {
	var names []string
	for _, line := range all {
		for _, word := range strings.Fields(line) {
			if strings.Contains(word, "/") && !strings.Contains(word, "=") || word == "initialize" || word == "GET" || word == "DELETE" {
				names = append(names, word)
				break
			}
		}
	}
	return strings.Join(names, " ")
}
