package importer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/claudeless/claudeless/internal/record/redact"
)

// Leak is a secret in a file.
type Leak struct {
	Rule    string `json:"rule"`
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`  // column in bytes, from 1
	Context string `json:"context"` // the first four characters of the secret
}

func (l Leak) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s…", l.File, l.Line, l.Column, l.Rule, l.Context)
}

// findSecretsInFile finds secrets in the file at path: known secret values, and strings whose form shows that they can only be
// secrets. Leaks contain name as the name of the file.
func findSecretsInFile(path, name string, redactor *redact.Redactor) ([]Leak, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	const chunk = 256 << 10
	ext := filepath.Ext(name)
	a := &fileSecretSearch{name: name, hasEscapes: ext == ".toml" || ext == ".json" || ext == ".jsonl", redactor: redactor, line: 1, lastFound: -1}
	in := bufio.NewReaderSize(file, chunk)
	var text []byte
	for err == nil {
		var line []byte
		line, err = in.ReadBytes('\n')
		if text = append(text, line...); err != nil || len(text) >= chunk {
			a.findSecretsInNextPartOfFile(string(text))
			text = text[:0]
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return a.leaks, err
}

type fileSecretSearch struct {
	name       string
	hasEscapes bool // strings in the file have JSON escapes
	redactor   *redact.Redactor
	line       int    // line number at which tail begins
	textEnd    string // the end of the text so far: a secret may continue in the next part
	lastFound  int    // offset in tail of the last secret found; negative if no secret begins in tail
	leaks      []Leak
}

func (a *fileSecretSearch) findSecretsInNextPartOfFile(nextPart string) {
	raw := a.textEnd + nextPart
	text, at := raw, []int32(nil)
	if a.hasEscapes && strings.Contains(raw, `\`) {
		text, at = unescapeJSONWithOffsets(raw)
	}
	place := func(i int) int {
		if at == nil {
			return i
		}
		return int(at[i])
	}
	line, counted, last := a.line, 0, a.lastFound
	for _, f := range a.redactor.Find(text) {
		start := place(f.Start)
		if !f.Certain || start <= a.lastFound {
			continue
		}
		line += strings.Count(raw[counted:start], "\n")
		counted, last = start, start
		a.leaks = append(a.leaks, Leak{
			Rule: strings.ToLower(strings.ReplaceAll(f.Kind, "_", "-")), File: a.name, Line: line,
			Column: start - strings.LastIndexByte(raw[:start], '\n'), Context: firstFourCharactersOfSecret(text[f.Start:f.End]),
		})
	}
	const overlap = 4 << 10
	cut := max(len(raw)-overlap, 0)
	cut += strings.IndexByte(raw[cut:], '\n') + 1
	a.line += strings.Count(raw[:cut], "\n")
	a.textEnd, a.lastFound = raw[cut:], last-cut
}

func firstFourCharactersOfSecret(secret string) string {
	var b strings.Builder
	n := 0
	for _, r := range secret {
		if n++; n > 4 {
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unescapeJSONWithOffsets resolves the escapes of JSON strings in raw; offsets maps each byte of text to its offset in raw.
func unescapeJSONWithOffsets(raw string) (text string, offsets []int32) {
	b := make([]byte, 0, len(raw))
	offsets = make([]int32, 0, len(raw))
	put := func(i int, s string) {
		for range len(s) {
			offsets = append(offsets, int32(i))
		}
		b = append(b, s...)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b, offsets = append(b, raw[i]), append(offsets, int32(i))
			continue
		}
		c := raw[i+1]
		switch short := strings.IndexByte(`btnfr"\/`, c); {
		case short >= 0:
			put(i, "\b\t\n\f\r\"\\/"[short:short+1])
			i++
		case c == 'u' && i+6 <= len(raw):
			if n, err := strconv.ParseUint(raw[i+2:i+6], 16, 16); err == nil {
				put(i, string(rune(n)))
				i += 5
				continue
			}
			put(i, `\`)
		default:
			put(i, `\`)
		}
	}
	return string(b), offsets
}
