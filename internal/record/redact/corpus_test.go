package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp/syntax"
	"strings"
	"testing"
)

// The corpus plants secrets that are generated from the rules: each rule's expression is turned into texts that it
// matches. Nothing in this file is a secret or looks like one to a scanner.

// generate generates a text that matches an expression.
func generate(r *rand.Rand, re *syntax.Regexp, b *strings.Builder) {
	times := func(least, most int) {
		const more = 9
		if most < 0 || most > least+more {
			most = least + more
		}
		for range least + r.IntN(most-least+1) {
			generate(r, re.Sub[0], b)
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		b.WriteRune(randomChar(r, re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789"[r.IntN(36)])
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			generate(r, sub, b)
		}
	case syntax.OpAlternate:
		generate(r, re.Sub[r.IntN(len(re.Sub))], b)
	case syntax.OpStar:
		times(0, -1)
	case syntax.OpPlus:
		times(1, -1)
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpRepeat:
		times(re.Min, re.Max)
	default: // places that have no width
	}
}

// randomChar returns a character of a class, preferably a printable one.
func randomChar(r *rand.Rand, ranges []rune) rune {
	var some []rune
	for c := rune('!'); c <= '~'; c++ {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= c && c <= ranges[i+1] && c != '\\' && c != '"' && c != '<' && c != '&' {
				some = append(some, c)
			}
		}
	}
	if len(some) == 0 {
		return ranges[0]
	}
	return some[r.IntN(len(some))]
}

// plantedSecret is a text with a secret in it.
type plantedSecret struct{ text, secret string }

// plantSecrets generates texts that one rule finds without context; it returns none if this is impossible for the rule.
func plantSecrets(t *testing.T, r *rand.Rand, s *secretShapeFinder, n, wanted int) []plantedSecret {
	t.Helper()
	rule := s.rules[n]
	re, err := syntax.Parse(rule.expr, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	var out []plantedSecret
	const tries = 400
	for range tries {
		if len(out) == wanted {
			break
		}
		var b strings.Builder
		generate(r, re, &b)
		text := b.String()
		if !mentions(text, rule.keywords) {
			first, _, _ := strings.Cut(rule.keywords, "|")
			text = first + " " + text
		}
		m := s.compiledPattern(n).FindStringSubmatchIndex(text)
		if m == nil || strings.ContainsAny(text, "\x00\x01") {
			continue
		}
		start, end := rule.secretSpan(m)
		secret := text[start:end]
		if rule.id == "vault-service-token" && strings.HasPrefix(secret, "s.") { // omitted, because "s." is in every line of code
			continue
		}
		if len(secret) < minSecretTextBytes || isPlaceholder(secret) || rule.entropy > 0 && entropy(secret) < rule.entropy || rule.isGuess && s.isGuessFalsePositive(rule, text[m[0]:m[1]], secret) {
			continue
		}
		out = append(out, plantedSecret{text, secret})
	}
	return out
}

func mentions(text, keywords string) bool {
	for word := range strings.SplitSeq(keywords, "|") {
		if strings.Contains(strings.ToLower(text), word) {
			return true
		}
	}
	return false
}

// journalLine returns a line of a capture file with the text in a call, in its result, and in JSON inside a string.
func journalLine(t *testing.T, text string) []byte {
	t.Helper()
	deep, err := json.Marshal(map[string]any{"said": text})
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(map[string]any{
		"type": "tool", "tool": "mcp__s__t", "input": map[string]any{"command": "run it\n" + text + "\n"}, "result": "before\n" + text + "\nbehind", "more": []any{string(deep)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// hasSecret reports whether a record still has a secret in any of its spellings.
func hasSecret(t *testing.T, record, secret string) bool {
	t.Helper()
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(record, secret) || strings.Contains(record, string(quoted[1:len(quoted)-1]))
}

// Every rule hides secrets that were generated from its own expression: in journal lines, in the MCP trace, and,
// unless the rule is a guess, in base64. The text around them is kept.
func TestCorpusOfRules(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 1))
	redactor, shapes := New(Options{}), newSecretShapeFinder()
	planted, idle := 0, []string{}
	for n, rule := range shapes.rules {
		made := plantSecrets(t, r, shapes, n, 2)
		if len(made) == 0 {
			idle = append(idle, rule.id)
		}
		for _, p := range made {
			planted++
			line := journalLine(t, p.text)
			hidden := string(redactor.JSON(line))
			if hasSecret(t, hidden, p.secret) {
				t.Errorf("%s: %q is left in %s", rule.id, p.secret, hidden)
			}
			if !json.Valid([]byte(hidden)) || !strings.Contains(hidden, `"before\n`) || !strings.Contains(hidden, `"tool":"mcp__s__t"`) {
				t.Errorf("%s: what stands around is lost: %s", rule.id, hidden)
			}
			said := "server says: " + p.text + "\n" // a line of its stderr in the trace
			if shown := redactor.String(said); strings.Contains(shown, p.secret) {
				t.Errorf("%s: %q is left in the trace: %s", rule.id, p.secret, shown)
			}
			if !rule.isGuess {
				packed := base64.StdEncoding.EncodeToString([]byte("it is " + p.text + " there"))
				if shown := redactor.String("data: " + packed + " end"); strings.Contains(shown, packed) {
					t.Errorf("%s: base64 of %q is left", rule.id, p.text)
				}
			}
		}
	}
	t.Logf("%d plants for %d rules; none could be made for %v", planted, len(shapes.rules), idle)
	if planted < 300 || len(idle) > 5 {
		t.Errorf("%d plants, %d rules without any: %v", planted, len(idle), idle)
	}
}

// Known values are found in every notation.
func TestCorpusOfKnownValues(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 2))
	const letters = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789 +/=-_.!%&\"'"
	ways := map[string]func(string) string{
		"plain":          func(s string) string { return "is " + s + ", yes" },
		"query":          func(s string) string { return "GET /x?q=" + url.QueryEscape(s) + "&y=1" },
		"path":           func(s string) string { return "/x/" + url.PathEscape(s) + "/y" },
		"base64":         func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) },
		"part of base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("somebody:" + s + ":more")) },
		"url base64":     func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("ab" + s)) },
	}
	planted := 0
	for i := range 60 {
		var b strings.Builder
		for range 12 + r.IntN(20) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		value := strings.TrimSpace(b.String()) + "x9"
		redactor := New(Options{Environ: []string{fmt.Sprintf("PLANT_%d_TOKEN=%s", i, value)}})
		for way, write := range ways {
			planted++
			text := write(value)
			line := string(redactor.JSON(journalLine(t, text)))
			if hasSecret(t, line, text) || hasSecret(t, line, value) {
				t.Errorf("%s: %q is left as %q in %s", way, value, text, line)
			}
			if shown := redactor.String("mcp s > " + text); strings.Contains(shown, text) {
				t.Errorf("%s: %q is left in the trace: %s", way, value, shown)
			}
		}
		for cut := 3; cut < len(value)-3; cut += 7 { // put together by a shell
			planted++
			if glue := `echo "` + value[:cut] + `""` + value[cut:] + `"`; isWordByte(value) && strings.Contains(redactor.String(glue), glue) {
				t.Errorf("split at %d: %q is left", cut, value)
			}
		}
	}
	if planted < 300 {
		t.Errorf("%d plants", planted)
	}
}

// isWordByte reports whether a value can be quoted unchanged.
func isWordByte(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r > '~' || !isBase64(byte(r)) })
}

// Record lines without secrets are unchanged.
func TestCorpusWithoutSecrets(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 3))
	hex := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("0123456789abcdef"[r.IntN(16)])
		}
		return b.String()
	}
	redactor := New(Options{Environ: []string{"HOME=/home/somebody", "PATH=/usr/bin:/bin", "MAX_THINKING_TOKENS=32000", "USER=somebody"}})
	for range 100 {
		id := fmt.Sprintf("%s-%s-4%s-8%s-%s", hex(8), hex(4), hex(3), hex(3), hex(12))
		for _, text := range []string{
			"session " + id + " begun",
			"commit " + hex(40) + "\n\n    fix the parser",
			"index " + hex(7) + ".." + hex(7) + " 100644",
			"toolu_" + hex(24) + " and msg_" + hex(24),
			"sha256:" + hex(64) + "  ./dist/app.js",
			"https://example.com/docs/page-" + hex(6) + "?page=2&lang=en#top",
			"total 12\n-rw-r--r-- 1 somebody somebody 210 Nov 22 18:00 main.go",
			"The password field is empty, and no token was given; see the section on API keys.",
			`if token == "" { return errors.New("no token") }`,
			`{"input_tokens": 1234, "output_tokens": 56, "cache_read_input_tokens": 0}`,
			"ok  \texample.com/pkg\t0.123s",
			"2026-11-22T18:00:00.123Z INFO listening on http://127.0.0.1:4321",
		} {
			line := journalLine(t, text)
			if got := redactor.JSON(line); string(got) != string(line) {
				t.Errorf("%q became %s", text, got)
			}
			if got := redactor.String(text); got != text {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
}
