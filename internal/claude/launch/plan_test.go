package launch

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/clock"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/catalog"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/scenarios"
)

var update = flag.Bool("update", false, "rewrite the plans in testdata")

// TestPlans resolves the command lines in testdata/*.txtar. The other files of an archive are written to a directory, $WORK, in which
// the program runs; home below it is the home directory. The file "plans" has
//
//	cd DIR             changes to another directory
//	$ NAME=VALUE FLAG  resolves a command line in an environment
//	FIELD: VALUE       a field of the plan that differs from the plan of the first command line, which is not shown
//	! LINE             printed on stderr
//	= TEXT             the error
//
// With -update, the lines of the output are rewritten.
func TestPlans(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no plans", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			at := -1
			for i, f := range archive.Files {
				if f.Name == "plans" {
					at = i
					continue
				}
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, bytes.ReplaceAll(f.Data, []byte("$WORK"), []byte(dir)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			script := string(archive.Files[at].Data)
			got := resolveAll(t, dir, script)
			if *update {
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(script, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func resolveAll(t *testing.T, dir, script string) string {
	t.Helper()
	var out strings.Builder
	var first map[string]string
	cwd := dir
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "cd":
			cwd = filepath.Join(dir, rest)
		case "$":
		case "", "#":
		default:
			continue
		}
		out.WriteString(line)
		if word != "$" {
			continue
		}
		fields, stderr, err := resolveLine(cwd, dir, strings.Fields(strings.ReplaceAll(rest, "$WORK", dir)))
		show := func(mark, text string) {
			for line := range strings.Lines(strings.ReplaceAll(text, dir, "$WORK")) {
				out.WriteString(strings.TrimRight(mark+" "+line, " \n") + "\n")
			}
		}
		if first == nil {
			first = fields
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if fields[key] != first[key] {
				show(key+":", changedItems(first[key], fields[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(first)) {
			if _, ok := fields[key]; !ok && err == nil {
				show(key+":", "none")
			}
		}
		show("!", stderr)
		if err != nil {
			show("=", err.Error())
		}
	}
	return out.String()
}

// changedItems returns a value or, if it and the first one are lists of texts, the items that were added (+) and removed (-).
func changedItems(first, value string) string {
	var before, after []string
	if json.Unmarshal([]byte(first), &before) != nil || json.Unmarshal([]byte(value), &after) != nil {
		return value
	}
	var out []string
	for _, item := range after {
		if !slices.Contains(before, item) {
			out = append(out, "+"+item)
		}
	}
	for _, item := range before {
		if !slices.Contains(after, item) {
			out = append(out, "-"+item)
		}
	}
	return strings.Join(out, " ")
}

// resolveLine resolves the words of a command line, after those of its environment.
func resolveLine(cwd, dir string, words []string) (fields map[string]string, stderr string, err error) {
	var errors bytes.Buffer
	s := &process.System{
		Args: []string{"claude"}, Environ: []string{"HOME=" + filepath.Join(dir, "home")}, Stderr: &errors, UID: 1000,
		Getwd:      func() (string, error) { return cwd, nil },
		Executable: func() (string, error) { return "/usr/bin/claude", nil },
		Now:        func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID:      func() string { return "00000000-0000-4000-8000-000000000001" },
	}
	for len(words) > 0 && !strings.HasPrefix(words[0], "-") && strings.Contains(words[0], "=") {
		s.Environ, words = append(s.Environ, words[0]), words[1:]
	}
	s.Args = append(s.Args, words...)
	f, err := flags.Parse(s, words)
	if err == nil {
		err = f.CheckAndNormalize(s)
	}
	if err != nil {
		return nil, errors.String(), err
	}
	plan, err := Resolve(s, f)
	if err != nil {
		return nil, errors.String(), err
	}
	fields = map[string]string{}
	flatten(reflect.ValueOf(plan), "", fields)
	return fields, errors.String(), nil
}

// flatten collects the fields of a value that are not zero, without functions and interfaces.
func flatten(v reflect.Value, path string, out map[string]string) {
	switch v.Interface().(type) {
	case *catalog.Catalog, *clock.TimeAndIDSource, *scenarios.Scenario, claudecode.Profile, time.Time:
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if name := field.Name; field.IsExported() {
				if field.Anonymous {
					name = ""
				}
				flatten(v.Field(i), strings.Trim(path+"."+name, "."), out)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(v.Elem(), path, out)
		}
	case reflect.Func, reflect.Interface, reflect.Chan:
	case reflect.Slice, reflect.Map:
		if v.Len() == 0 {
			return
		}
		if raw, err := json.Marshal(v.Interface()); err == nil {
			out[path] = string(raw)
		}
	default:
		if !v.IsZero() {
			out[path] = fmt.Sprint(v.Interface())
		}
	}
}
