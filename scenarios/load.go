package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/claudeless/claudeless/internal/diag"
	"github.com/claudeless/claudeless/internal/match"
)

// LoadOptions say how files are read. The zero value works.
type LoadOptions struct {
	// ReadFile reads a scenario, an included one or a `$file`; nil = os.ReadFile.
	ReadFile func(path string) ([]byte, error)
}

// Load reads the scenario at path: JSON when its extension is ".json", else
// TOML. The error is a [diag.List] with everything that is wrong.
func Load(path string, o LoadOptions) (*Scenario, error) {
	l := newLoader(o)
	src, err := l.readFile(path)
	if err != nil {
		return nil, diag.List{{Pos: diag.Position{File: path}, Message: "cannot read the scenario: " + reason(err)}}
	}
	return l.load(path, src)
}

// Parse is [Load] for a source that was read already; path says what it is
// called and where its files are looked for.
func Parse(path string, src []byte, o LoadOptions) (*Scenario, error) {
	return newLoader(o).load(path, src)
}

// loader reads one scenario and what it includes.
type loader struct {
	readFile func(string) ([]byte, error)
	list     diag.List
	lib      *library
	loaded   []string // included files so far, cleaned paths
}

// source is one file of a scenario.
type source struct {
	ix        *diag.Index
	dir       string
	templates bool
}

func newLoader(o LoadOptions) *loader {
	l := &loader{readFile: o.ReadFile, lib: newLibrary()}
	if l.readFile == nil {
		l.readFile = os.ReadFile
	}
	return l
}

func (l *loader) load(path string, src []byte) (*Scenario, error) {
	s := l.file(path, src, []string{filepath.Clean(path)})
	l.list.Sort()
	if err := l.list.Err(); err != nil {
		return nil, err
	}
	s.library = l.lib
	return s, nil
}

// file reads one file and its includes; stack leads to it.
func (l *loader) file(path string, src []byte, stack []string) *Scenario {
	s := &Scenario{}
	ix, readable := l.bind(path, src, s)
	if !readable {
		return s
	}
	s.source = &source{ix: ix, dir: filepath.Dir(path), templates: s.Templates == nil || *s.Templates}
	c := &compiler{loader: l, src: s.source}
	c.scenario(s)
	for i, name := range s.Include {
		s.Responses = append(s.Responses, l.include(s.source, i, name, stack)...)
	}
	return s
}

// include reads the i-th included file and returns its rules.
func (l *loader) include(from *source, i int, name string, stack []string) []Rule {
	at := diag.Path{"include", i}
	path := resolve(from.dir, name)
	clean := filepath.Clean(path)
	if slices.Contains(stack, clean) {
		names := make([]string, 0, len(stack)+1)
		for _, p := range append(slices.Clone(stack), clean) {
			names = append(names, filepath.Base(p))
		}
		l.list = append(l.list, from.ix.At(at, "include cycle: "+strings.Join(names, " → ")))
		return nil
	}
	if slices.Contains(l.loaded, clean) {
		return nil
	}
	l.loaded = append(l.loaded, clean)
	src, err := l.readFile(path)
	if err != nil {
		l.list = append(l.list, from.ix.At(at, fmt.Sprintf("cannot read the included file %q: %s", name, reason(err))))
		return nil
	}
	return l.file(path, src, append(slices.Clone(stack), clean)).Responses
}

// bind decodes one file into s; false = it could not be read at all.
func (l *loader) bind(path string, src []byte, s *Scenario) (*diag.Index, bool) {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		ix := diag.IndexJSON(path, src)
		if d := ix.Doubt(); d != nil {
			d.Message = "invalid JSON: " + d.Message
			l.list = append(l.list, *d)
			return ix, false
		}
		l.list = append(l.list, ix.Bind(s)...)
		return ix, true
	}
	ix := diag.IndexTOML(path, src)
	d := ix.Doubt()
	if d == nil {
		l.list = append(l.list, ix.Bind(s)...)
		return ix, true
	}
	if ix.Refused() {
		l.list = append(l.list, *d)
		return ix, false
	}
	// The index takes only what is plain; the decoder has the last word.
	var tree map[string]any
	if _, err := toml.Decode(string(src), &tree); err != nil {
		l.list = append(l.list, syntaxError(ix, *d, err))
		return ix, false
	}
	l.list = append(l.list, diag.Bind(tree, s, ix)...)
	return ix, true
}

// syntaxError is the decoder's error. Its place is the one where the index
// began to doubt, unless the decoder went on well beyond that: the decoder
// tells some errors only at the next line or at the end of the file.
func syntaxError(ix *diag.Index, doubt diag.Diagnostic, err error) diag.Diagnostic {
	pe, ok := errors.AsType[toml.ParseError](err)
	if !ok || strings.Contains(doubt.Message, "defined") || strings.Contains(doubt.Message, "not closed") {
		doubt.Message = "invalid TOML: " + doubt.Message
		return doubt
	}
	message := pe.Message
	if message == "" {
		message = pe.Error()
	}
	d := ix.AtLine(pe.Position.Line, pe.Position.Col, "")
	if gap := d.Pos.Line - doubt.Pos.Line; gap == 0 || gap == 1 {
		d, d.Hint = doubt, doubt.Message
	}
	d.Message = "invalid TOML: " + strings.TrimSuffix(message, ".")
	return d
}

// reason is what a file error says without the path.
func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// resolve makes name, as written in a file of dir, a path.
func resolve(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// Matcher is the rule's pattern, compiled; it matches everything before loading.
func (r *Rule) Matcher() match.Text { return r.match }

// Locate makes a diagnostic for a part of the rule, in whichever file it is.
// Offset counts characters within a string.
func (r *Rule) Locate(path diag.Path, offset int, message string) diag.Diagnostic {
	return r.source.locate(append(diag.Path{"responses", r.index}, path...), offset, message)
}

// Locate is [Rule.Locate] for the scenario's own file.
func (s *Scenario) Locate(path diag.Path, offset int, message string) diag.Diagnostic {
	return s.source.locate(path, offset, message)
}

// locate knows that a text may stand for the whole response.
func (s *source) locate(path diag.Path, offset int, message string) diag.Diagnostic {
	if s == nil {
		return diag.Diagnostic{Message: message}
	}
	if last := len(path) - 1; last >= 0 && path[last] == "text" {
		if whole, ok := s.ix.Lookup(path[:last]); ok && whole.Kind == diag.String {
			path = path[:last]
		}
	}
	return s.ix.AtText(path, offset, message)
}
