package history_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/api/history"
)

var update = flag.Bool("update", false, "rewrite what the requests in testdata are read as")

// Each file of testdata/requests.txtar has a request and, below "=>", the result of reading it. A name that begins
// with "claude" is a request of Claude Code.
func TestRequests(t *testing.T) {
	const name = "testdata/requests.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rd := history.NewRequestReader(64)
	for i, file := range archive.Files {
		body, want, _ := strings.Cut(string(file.Data), "=>\n")
		header := http.Header{"Anthropic-Beta": {"a, b,", "c"}}
		if strings.HasPrefix(file.Name, "claude") {
			header.Set("User-Agent", "claude-cli/2.1.330 (external, cli)")
		}
		client := history.SenderFromRequestHeaders(&http.Request{Header: header}, "", "")
		var got string
		for range 2 { // the second time from the cache
			got = requestFacts(rd.Read([]byte(strings.TrimSuffix(body, "\n")), client))
		}
		if *update {
			archive.Files[i].Data = []byte(body + "=>\n" + got)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// requestFacts describes a request after reading.
func requestFacts(r *history.Request, err error) string {
	var b strings.Builder
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	fmt.Fprintf(&b, "size %d, betas %q\n", r.InputSizeInBytes(), r.Betas)
	if r.UnknownKeys != nil {
		fmt.Fprintf(&b, "unknown %q\n", r.UnknownKeys)
	}
	if err := r.CheckAsTokenCountRequest(); err != nil {
		fmt.Fprintf(&b, "cannot be counted: %v\n", err)
	}
	if err := r.Check(); err != nil {
		fmt.Fprintf(&b, "refused: %v\n", err)
		return b.String()
	}
	fmt.Fprintf(&b, "kind %q, directory %q, system %q, tools %q, schemas of %q\n", r.SideRequestKind(), r.WorkingDirectory(), r.SystemText(), r.Tools.Names,
		slices.Sorted(maps.Keys(r.Tools.Schemas())))
	for _, p := range r.PrefixesEndingAtEachBlock() {
		fmt.Fprintf(&b, "prefix of %d bytes, kept for %v\n", p.Size, p.CacheTTL)
	}
	for _, g := range r.GroupAndInterpretMessages(r.Messages) {
		fmt.Fprintf(&b, "group %d, assistant %v, text %q, beside %q\n", g.Index, g.Assistant, g.Text, g.Context)
		for _, u := range g.Uses {
			fmt.Fprintf(&b, "  call %s %s %s\n", u.ID, u.Name, u.Input)
		}
		for _, s := range g.Steps {
			fmt.Fprintf(&b, "  %s %q files %q\n", s.Kind, s.Text, s.Files)
			for _, result := range s.Results {
				fmt.Fprintf(&b, "    %s %q error %v\n", result.ID, result.Text, result.IsError)
			}
		}
	}
	return b.String()
}

// A truncated request is refused at every length, and white space between its parts does not matter.
func TestCutOffRequest(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"stream":true,"metadata":{"a\"\\":["x\\\"y",1.5,null,{}]},"\u0074ools":[],"messages":[{"role":"user","content":"hi \\"}]}`
	read := func(text string) (*history.Request, error) {
		return history.NewRequestReader(8).Read([]byte(text), history.RequestSender{})
	}
	for i := range body {
		if r, err := read(body[:i]); err == nil {
			t.Errorf("%q is read as %+v", body[:i], r)
		}
	}
	var spaced strings.Builder
	dec := json.NewDecoder(strings.NewReader(body))
	last := int64(0)
	for {
		if _, err := dec.Token(); err != nil {
			break
		}
		at := dec.InputOffset()
		spaced.WriteString(" \n\t\r")
		for _, c := range body[last:at] {
			if c == ',' || c == ':' {
				spaced.WriteString("\n" + string(c) + "\t")
				continue
			}
			spaced.WriteRune(c)
		}
		last = at
	}
	for _, text := range []string{body, spaced.String() + " \r\n", " " + body} {
		r, err := read(text)
		if err != nil || r.Model != "m" || !r.Stream || len(r.Messages) != 1 || r.Messages[0].FirstText() != `hi \` || r.Tools.Names != nil {
			t.Errorf("%q: %v, %+v", text, err, r)
		}
	}
	for _, text := range []string{
		"", " ", "[]", `"x"`, body + "x", body + "{}", `{"a":1,}`, `{"a" 1}`, `{"a" 12}`, `{"a"}`, `{a:1}`, `{"a":}`, `{"a":1 "b":2}`, `{,}`, `{"\x":1}`, `{"a":1`, `{"a":"b\"}`, `{"a":[1}`, `{"a":tru}`,
		`{"messages":{}}`, `{"messages":[1,]}`, `{"messages":[,1]}`, `{"messages":[{}`, `{"messages":[{"role":"user","content":"x"}}`,
	} {
		if r, err := read(text); err == nil {
			t.Errorf("%q is read as %+v", text, r)
		}
	}
	if r, err := read(` { } `); err != nil || r.Model != "" {
		t.Errorf("an empty object: %v", err)
	}
}

// An invalid long value is refused each time, and a similar valid one is accepted.
func TestLongValues(t *testing.T) {
	rd := history.NewRequestReader(8)
	for _, n := range []int{400, 511, 512, 513, 2000} {
		right, wrong := `{"metadata":["`+strings.Repeat("x", n)+`"]}`, `{"metadata":[`+strings.Repeat("x", n)+`]}`
		for range 2 {
			if _, err := rd.Read([]byte(right), history.RequestSender{}); err != nil {
				t.Errorf("%d: %v", n, err)
			}
			if _, err := rd.Read([]byte(wrong), history.RequestSender{}); err == nil {
				t.Errorf("%d: a value that is no JSON is read", n)
			}
		}
	}
}

// Equal histories have equal digests; histories that differ in order or parts have different ones.
func TestDigests(t *testing.T) {
	a, b := history.Digest{}.Chain("a"), history.Digest{}.Chain("b")
	known := map[history.Digest]string{}
	for name, d := range map[string]history.Digest{
		"nothing": {}, "a": a, "b": b, "a b": a.Chain("b"), "ab": history.Digest{}.Chain("ab"), "a,b": history.Digest{}.Chain("a", "b"), "b a": b.Chain("a"),
		"a then b": a.ChainDigest(b), "b then a": b.ChainDigest(a), "a then a": a.ChainDigest(a), "nothing then a": history.Digest{}.ChainDigest(a), "a then nothing": a.ChainDigest(history.Digest{}),
		"a then b then a": a.ChainDigest(b).ChainDigest(a), "long": history.Digest{}.Chain(strings.Repeat("x", 70000)), "longer": history.Digest{}.Chain(strings.Repeat("x", 70000+256)),
	} {
		if other, found := known[d]; found {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		known[d] = name
	}
	// Journals contain values that are derived from the digests, so digests do not change between versions.
	if got, want := fmt.Sprintf("%x", a.ChainDigest(b)), "7b39756989d57db635dd15d283423263"; got != want {
		t.Errorf("a then b: %s, want %s", got, want)
	}
}
