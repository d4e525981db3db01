package importer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/importer"
)

// line is a line of a transcript.
func line(tb testing.TB, n int, role string, content any) string {
	tb.Helper()
	l := map[string]any{
		"type": role, "uuid": fmt.Sprintf("%08x-0000-4000-8000-000000000000", n), "parentUuid": nil, "isSidechain": false,
		"sessionId": "8e0d1c21-0000-4000-8000-000000000000", "cwd": "/home/jdoe/proj",
		"message": map[string]any{"role": role, "id": fmt.Sprintf("msg_%020d", n), "content": content},
	}
	if n > 1 {
		l["parentUuid"] = fmt.Sprintf("%08x-0000-4000-8000-000000000000", n-1)
	}
	raw, err := json.Marshal(l)
	if err != nil {
		tb.Fatal(err)
	}
	return string(raw) + "\n"
}

func textBlock(s string) map[string]any { return map[string]any{"type": "text", "text": s} }

func toolUse(id, tool string, input any) map[string]any {
	return map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}
}

func toolResult(id, text string) map[string]any {
	return map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}
}

// secret returns a secret of one of many shapes, or a known value.
func secret(r *rand.Rand, known string) string {
	word := func(n int) string {
		const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[r.IntN(len(letters))]
		}
		return string(b)
	}
	switch r.IntN(5) {
	case 0:
		return "ghp" + "_" + word(36)
	case 1:
		return "sk-" + "ant-api03-" + word(40)
	case 2:
		return "AK" + "IA" + strings.ToUpper(word(16))
	case 3:
		return "xox" + "b-" + word(24)
	}
	return known
}

// R5: none of 1,000 planted secrets (plain, split, encoded) remains, and no word around them is lost.
func TestPlantedSecrets(t *testing.T) {
	const known = "pl4nted-Value-9x7z"
	r := rand.New(rand.NewPCG(5, 5))
	dir := t.TempDir()
	for round := range 20 {
		var session strings.Builder
		var plants []string
		n := 0
		add := func(role string, content any) {
			n++
			session.WriteString(line(t, n, role, content))
		}
		for i := range 50 {
			s := secret(r, known)
			plants = append(plants, s)
			id := fmt.Sprintf("toolu_%020d", n)
			half := len(s) / 2
			add("user", fmt.Sprintf("marker%d please", i))
			switch i % 8 {
			case 0:
				add("assistant", []any{textBlock("the token is " + s + ", keep it")})
			case 1: // split over blocks
				add("assistant", []any{textBlock("the token is " + s[:half]), textBlock(s[half:] + " now")})
			case 2: // in JSON in a string
				add("assistant", []any{textBlock(`{"a":"{\"deep\":\"` + s + `\"}"}`)})
			case 3:
				add("assistant", []any{textBlock("see " + base64.StdEncoding.EncodeToString([]byte("user:"+s)) + " there")})
			case 4:
				add("assistant", []any{textBlock("see https://h.example/x?q=" + url.QueryEscape("v "+s) + " there")})
			case 5:
				add("assistant", []any{toolUse(id, "Bash", map[string]any{"command": "curl -H 'X: " + s + "' h"})})
				add("user", []any{toolResult(id, "sent "+s)})
			case 6: // the secret is two strings, which the shell joins
				add("assistant", []any{toolUse(id, "Bash", map[string]any{"command": `echo "` + s[:half] + `""` + s[half:] + `"`})})
				add("user", []any{toolResult(id, "ok")})
			default:
				add("assistant", []any{toolUse(id, "mcp__srv__put", map[string]any{"v": s})})
				add("user", []any{toolResult(id, "stored "+s)})
			}
		}
		files := importText(t, dir, session.String(), importer.CurrentEnvironment{Environ: []string{"MY_TOKEN=" + known}})
		for i, s := range plants {
			for _, form := range []string{s, s[:len(s)/2+2], s[len(s)/2-2:], base64.StdEncoding.EncodeToString([]byte("user:" + s))} {
				if strings.Contains(files, form) {
					t.Errorf("round %d: plant %d (way %d) is left", round, i, i%8)
				}
			}
		}
		for _, word := range []string{"keep it", "sent REDACTED_", "stored REDACTED_"} {
			if !strings.Contains(files, word) {
				t.Errorf("round %d: %q is lost", round, word)
			}
		}
	}
}

// importText imports a session and returns all imported files as one text.
func importText(tb testing.TB, dir, session string, place importer.CurrentEnvironment) string {
	tb.Helper()
	name := filepath.Join(dir, "in.jsonl")
	if err := os.WriteFile(name, []byte(session), 0o600); err != nil {
		tb.Fatal(err)
	}
	out := filepath.Join(dir, "kit")
	o, err := importer.Run(tb.Context(), importer.Options{Files: []string{name}, Out: out, Force: true, Environment: place, Stdout: &bytes.Buffer{}})
	if err != nil {
		tb.Fatalf("%v: %v", err, o.Leaks)
	}
	var all strings.Builder
	for _, file := range o.Written {
		data, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// R8: the same input gives the same bytes.
func TestSameBytes(t *testing.T) {
	session := line(t, 1, "user", "hello to everybody") +
		line(t, 2, "assistant", []any{textBlock("hi jane@corp.io and joe@corp.io")})
	a := importText(t, t.TempDir(), session, importer.CurrentEnvironment{})
	b := importText(t, t.TempDir(), session, importer.CurrentEnvironment{})
	if a != b {
		t.Errorf("%s\nis not\n%s", a, b)
	}
	if !strings.Contains(a, "hi REDACTED_EMAIL_1 and REDACTED_EMAIL_2") {
		t.Errorf("the addresses are not numbered: %s", a)
	}
}

// R7: go test -run xxx -bench Transcript -benchmem ./internal/importer. The ratio compares it with parsing the same
// lines as JSON only.
func BenchmarkTranscript(b *testing.B) {
	var session strings.Builder
	words := corpus(b)
	n := 0
	for session.Len() < 20<<20 {
		id := fmt.Sprintf("toolu_%020d", n)
		session.WriteString(line(b, n+1, "user", fmt.Sprintf("look at file %d again", n)))
		session.WriteString(line(b, n+2, "assistant", []any{toolUse(id, "Read", map[string]any{"file_path": "/home/jdoe/proj/a.go"})}))
		session.WriteString(line(b, n+3, "user", []any{toolResult(id, words[n%len(words)])}))
		session.WriteString(line(b, n+4, "assistant", []any{textBlock("seen")}))
		n += 4
	}
	text := session.String()
	var reading time.Duration
	b.SetBytes(int64(len(text)))
	dir := b.TempDir()
	for b.Loop() {
		begin := time.Now()
		for l := range strings.Lines(text) {
			var v any
			if err := json.Unmarshal([]byte(l), &v); err != nil {
				b.Fatal(err)
			}
		}
		reading += time.Since(begin)
		importText(b, dir, text, importer.CurrentEnvironment{})
	}
	b.ReportMetric(float64(b.Elapsed()-reading)/float64(reading), "×json")
}

// corpus returns real text: the sources and documents of this repository, in parts.
func corpus(b *testing.B) (parts []string) {
	b.Helper()
	for _, pattern := range []string{"../../docs/*.md", "../../simulator/*.go", "../../mcp/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			b.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			const most = 8 << 10
			parts = append(parts, strings.ToValidUTF8(string(data[:min(most, len(data))]), ""))
		}
	}
	return parts
}
