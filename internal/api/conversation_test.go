package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/api"
	"github.com/claudeless/claudeless/scenarios"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// fixedClock never moves and never waits.
type fixedClock struct{}

func (fixedClock) Now() time.Time                                   { return time.Date(2026, 1, 15, 10, 30, 0, 0, time.UTC) }
func (fixedClock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }
func (fixedClock) NewID() string                                    { return "4a1c0c5e-0000-4000-8000-000000000001" }

// newServer serves a scenario written as TOML.
func newServer(tb testing.TB, src string, change ...func(*api.Options)) *api.Server {
	tb.Helper()
	scenario, err := scenarios.Parse("scenario.toml", []byte(src), scenarios.LoadOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	o := api.Options{Scenario: scenario, Clock: fixedClock{}}
	for _, f := range change {
		f(&o)
	}
	s, err := api.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// TestConversations plays testdata/*.txtar: a scenario, then requests with their expected answers. A request has a
// first line, headers, an empty line and the body. An answer has the status, the headers that the first line of the
// archive lists after "show:", and the body. The file "journal", if it exists, is the expected journal.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before := txtar.Format(archive)
			playArchive(t, archive)
			after := txtar.Format(archive)
			if bytes.Equal(before, after) {
				return
			}
			if !*update {
				t.Fatalf("%s (-want +got):\n%s", file, cmp.Diff(string(before), string(after)))
			}
			if err := os.WriteFile(file, after, 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func playArchive(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	var capture bytes.Buffer
	var server *api.Server
	var show []string
	for line := range strings.SplitSeq(string(archive.Comment), "\n") {
		if names, ok := strings.CutPrefix(line, "show: "); ok {
			show = strings.Fields(names)
		}
	}
	answer := ""
	for i := range archive.Files {
		f := &archive.Files[i]
		switch {
		case f.Name == "scenario.toml":
			server = newServer(t, string(f.Data), func(o *api.Options) { o.Capture, o.Token = &capture, "secret-token" })
		case strings.HasSuffix(f.Name, "request"):
			answer = exchangeText(t, server, string(f.Data), show)
		case strings.HasSuffix(f.Name, "answer"):
			f.Data = []byte(answer)
		case f.Name == "journal":
			f.Data = []byte(journalText(t, capture.String()))
		}
	}
}

// exchangeText sends a request in the form of an archive and returns the answer in that form.
func exchangeText(t *testing.T, server http.Handler, text string, show []string) string {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	first, err := in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	method, path, _ := strings.Cut(strings.TrimSpace(first), " ")
	header := http.Header{"Content-Type": {"application/json"}}
	for {
		line, err := in.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" || err != nil {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		header.Add(name, strings.TrimSpace(value))
	}
	r := httptest.NewRequestWithContext(t.Context(), method, path, in)
	r.RemoteAddr, r.Header = "127.0.0.1:1234", header
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	var out strings.Builder
	fmt.Fprintln(&out, w.Code)
	for _, name := range show {
		if value := w.Header().Get(name); value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintln(&out)
	body := strings.TrimSuffix(w.Body.String(), "\n")
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") { // one line per event
		body = strings.ReplaceAll(strings.ReplaceAll(body, "\ndata: ", " "), "\n\n", "\n")
	}
	return out.String() + strings.TrimSuffix(body, "\n") + "\n"
}

// journalText returns the journal lines without the fields that are the same in all of them.
func journalText(t *testing.T, lines string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(lines) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"time", "pid", "session_id", "ms", "namespace", "file"} {
			if fields[name] == "" || name != "namespace" {
				delete(fields, name)
			}
		}
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			value, err := json.Marshal(fields[key])
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, key+"="+string(value))
		}
		fmt.Fprintln(&out, strings.Join(parts, " "))
	}
	return out.String()
}

// A conversation is replayed with the values of its requests, even if another conversation with the same history has
// other values.
func TestReplayKeepsVariablesApart(t *testing.T) {
	for name, tt := range map[string]struct {
		members [2]string // of the bodies
		headers [2]string
	}{
		"metadata":      {members: [2]string{`"metadata":{"user_id":"u"}`, `"metadata":{"user_id":"v"}`}},
		"tool_choice":   {members: [2]string{`"tool_choice":{"type":"auto"}`, `"tool_choice":{"type":"any"}`}},
		"thinking":      {members: [2]string{`"thinking":{"type":"disabled"}`, `"thinking":{"type":"adaptive"}`}},
		"output_config": {members: [2]string{`"output_config":{"effort":"low"}`, `"output_config":{"effort":"high"}`}},
		"system":        {members: [2]string{`"system":"a"`, `"system":"b"`}},
		"max_tokens":    {members: [2]string{`"max_tokens":500`, `"max_tokens":600`}},
		"cwd":           {members: [2]string{`"system":"Primary working directory: /a"`, `"system":"Primary working directory: /b"`}},
		"agent":         {headers: [2]string{"X-Claude-Code-Agent-Id: a", "X-Claude-Code-Agent-Id: b"}},
		"betas":         {headers: [2]string{"Anthropic-Beta: a", "Anthropic-Beta: b"}},
		"headers":       {headers: [2]string{"X-Team: a", "X-Team: b"}},
		"session.id":    {headers: [2]string{"X-Claude-Code-Session-Id: a", "X-Claude-Code-Session-Id: b"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "[api]\ndiverged = \"error\"\n[[responses]]\npattern = { type = \"exact\", text = \"first\" }\nresponse = \"{{ "+name+" }}\"\n"+
				"[[responses]]\npattern = { type = \"exact\", text = \"second\" }\nresponse = \"fine\"\n")
			ask := func(i int, messages ...string) (int, string) {
				t.Helper()
				members := []string{`"model":"claude-sonnet-5-5"`, `"messages":[` + strings.Join(messages, ",") + `]`}
				if name != "max_tokens" {
					members = append(members, `"max_tokens":900`)
				}
				header := []string{"Content-Type: application/json"}
				if tt.members[i] != "" {
					members = append(members, tt.members[i])
				} else {
					header = append(header, tt.headers[i])
				}
				w := postMessages(t, s, "{"+strings.Join(members, ",")+"}", header...)
				var m struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil || len(m.Content) != 1 {
					return w.Code, w.Body.String()
				}
				return w.Code, m.Content[0].Text
			}
			const first, second = `{"role":"user","content":"first"}`, `{"role":"user","content":"second"}`
			var answers [2]string
			for i := range answers {
				_, answers[i] = ask(i, first)
			}
			if answers[0] == answers[1] {
				t.Fatalf("both answers are %q", answers[0])
			}
			for i, text := range answers {
				quoted, err := json.Marshal(text)
				if err != nil {
					t.Fatal(err)
				}
				if code, got := ask(i, first, `{"role":"assistant","content":`+string(quoted)+`}`, second); code != http.StatusOK || got != "fine" {
					t.Errorf("conversation %d: %d %s", i, code, got)
				}
			}
		})
	}
}
