package importer_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/importer"
)

// writeFileSet writes a file set into dir: a scenario with sections, each with a title and a body, and the files next to it.
func writeFileSet(t *testing.T, o importer.FileSetOptions, update bool, files map[string]string, sections ...[2]string) (notes []string, err error) {
	t.Helper()
	k, err := importer.NewUncommittedFileSet(o)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Discard()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		k.AddFileWithContent(name, []byte(files[name]))
	}
	f := k.Create("scenario.toml")
	f.Write([]byte("name = \"x\"\n\n"))
	for _, s := range sections {
		f.Write([]byte(importer.FormatSectionWithBodyDigest(s[0], s[1]+"\n\n")))
	}
	f.Write([]byte(importer.FormatSectionWithBodyDigest("files next to this one", k.FileDigestCommentLines())))
	f.Close()
	if update {
		if notes, err = k.MergeUserEditsOfExistingFiles("scenario.toml"); err != nil {
			return nil, err
		}
	}
	_, err = k.CommitWithoutSecretCheck()
	return notes, err
}

// An update contains the changes in the session and keeps edits that were made by hand.
func TestUpdateKeepsEdits(t *testing.T) {
	t.Chdir(t.TempDir())
	o := importer.FileSetOptions{Out: "kit"}
	if _, err := writeFileSet(t, o, false, map[string]string{"fixtures/edited.toml": "a = 1\n", "fixtures/old.toml": "a = 1\n", "fixtures/same.toml": "a = 1\n", "fixtures/both.toml": "a = 1\n", "fixtures/agree.toml": "a = 1\n"},
		[2]string{"1: first", "text = \"one\""}, [2]string{"2: second", "text = \"two\""}, [2]string{"3: third", "text = \"three\""}, [2]string{"4: fourth", "text = \"four\""},
		[2]string{"5: fifth", "text = \"five\""}, [2]string{"tools that ran", "tools = 1"}); err != nil {
		t.Fatal(err)
	}
	edit := func(name, old, replacement string) {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.Replace(data, []byte(old), []byte(replacement), 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("kit/scenario.toml", `"two"`, `"two, edited"`)
	edit("kit/scenario.toml", `"three"`, `"three, edited"`)
	edit("kit/scenario.toml", `"four"`, `"four, edited"`)
	edit("kit/fixtures/edited.toml", "1", "7")
	edit("kit/fixtures/both.toml", "1", "8")
	edit("kit/fixtures/agree.toml", "1", "2")
	notes, err := writeFileSet(t, o, true,
		map[string]string{"fixtures/edited.toml": "a = 1\n", "fixtures/old.toml": "a = 2\n", "fixtures/same.toml": "a = 1\n", "fixtures/both.toml": "a = 2\n", "fixtures/agree.toml": "a = 2\n", "fixtures/new.toml": "a = 3\n"},
		[2]string{"1: first again", "text = \"uno\""}, [2]string{"2: second", "text = \"two\""}, [2]string{"3: third", "text = \"tres\""}, [2]string{"6: sixth", "text = \"six\""},
		[2]string{"tools that ran", "tools = 2"})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, note := range notes {
		got.WriteString(filepath.ToSlash(note) + "\n")
	}
	if err := filepath.WalkDir("kit", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		for line := range strings.Lines(string(data)) {
			if !strings.HasPrefix(line, "#") && line != "\n" {
				got.WriteString(filepath.ToSlash(name) + " " + line)
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := `kit/scenario.toml:9: this rule was edited by hand and differs from the new session (3: third); your version is kept
kit/scenario.toml:12: this rule is not in the new session, but it was edited by hand; your version is kept
kit/scenario.toml:15: this rule is not in the new session; it was removed
kit/fixtures/both.toml: the file was edited by hand and differs from the new import; your version is kept
kit/fixtures/agree.toml a = 2
kit/fixtures/both.toml a = 8
kit/fixtures/edited.toml a = 7
kit/fixtures/new.toml a = 3
kit/fixtures/old.toml a = 2
kit/fixtures/same.toml a = 1
kit/scenario.toml name = "x"
kit/scenario.toml text = "uno"
kit/scenario.toml text = "two, edited"
kit/scenario.toml text = "three, edited"
kit/scenario.toml text = "six"
kit/scenario.toml text = "four, edited"
kit/scenario.toml tools = 2
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Without tools and files in the new session, edited rules are kept at the end. A repeated title is another section.
func TestUpdateOfRules(t *testing.T) {
	t.Chdir(t.TempDir())
	o := importer.FileSetOptions{Out: "kit"}
	for _, text := range []string{"name = \"by hand\"\n", ""} {
		if err := os.MkdirAll("kit", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("kit/scenario.toml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := writeFileSet(t, o, true, nil, [2]string{"1: first", "x"}); err == nil || !strings.Contains(err.Error(), "was not written by this version of `import`; use --force to overwrite it") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := writeFileSet(t, o, false, nil, [2]string{"1: first", "x"}); err == nil || !strings.Contains(err.Error(), "already exists; use --force to overwrite it") {
		t.Errorf("without an update: %v", err)
	}
	o.Force = true
	if _, err := writeFileSet(t, o, false, nil, [2]string{"rule: a", "a"}, [2]string{"rule: b", "b"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("kit/scenario.toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("kit/scenario.toml", bytes.Replace(data, []byte("\nb\n"), []byte("\nedited\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	notes, err := writeFileSet(t, importer.FileSetOptions{Out: "kit"}, true, nil, [2]string{"rule: a", "a"})
	if want := []string{filepath.Join("kit", "scenario.toml") + ":6: this rule is not in the new session, but it was edited by hand; your version is kept"}; err != nil || !slices.Equal(notes, want) {
		t.Errorf("%v, %q", err, notes)
	}
	if data, err = os.ReadFile("kit/scenario.toml"); err != nil || !strings.Contains(string(data), "edited\n") {
		t.Errorf("%v\n%s", err, data)
	}
}

// A file set without an output directory is in a temporary directory, which is removed completely.
func TestFileSetWithoutDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	k, err := importer.NewUncommittedFileSet(importer.FileSetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k.AddFileWithContent("a/b.toml", []byte("x = 1\n"))
	var sent bytes.Buffer
	to := filepath.Join(t.TempDir(), "copy")
	if err := k.CopyFile("a/b.toml", &sent); err != nil || sent.String() != "x = 1\n" {
		t.Errorf("sent: %v, %q", err, &sent)
	}
	if err := k.CopyFile("none", &sent); err == nil {
		t.Error("a file that does not exist is sent")
	}
	if err := k.CopyTo(to); err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "a", "b.toml")); err != nil || string(data) != "x = 1\n" {
		t.Errorf("copied: %v, %q", err, data)
	}
	k.AddFileWithContent("a/b.toml", nil) // the name is in use
	if err := k.Err(); err == nil || !strings.HasPrefix(err.Error(), "writing a/b.toml: ") {
		t.Errorf("the same name again: %v", err)
	}
	if _, err := k.MergeUserEditsOfExistingFiles("a/b.toml"); !errors.Is(err, k.Err()) {
		t.Errorf("update: %v", err)
	}
	if _, err := k.CommitWithoutSecretCheck(); !errors.Is(err, k.Err()) {
		t.Errorf("commit: %v", err)
	}
	k.Discard()
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("%v, left: %v", err, left)
	}
}

// A file set that is not committed does not change its output directory.
func TestDiscardedFileSet(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("there", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{"there", "created"} {
		k, err := importer.NewUncommittedFileSet(importer.FileSetOptions{Out: out})
		if err != nil {
			t.Fatal(err)
		}
		k.AddFileWithContent("a", []byte("x\n"))
		k.Discard()
		k.Discard()
	}
	left, err := filepath.Glob("*")
	if err != nil || !slices.Equal(left, []string{"there"}) {
		t.Errorf("%v, %q", err, left)
	}
	if left, err := os.ReadDir("there"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", err, left)
	}
}

// Every secret in a file is found once and at its position, however long the file and its lines are. In TOML and JSON
// it is found even if it is escaped.
func TestLeaksOfFileSets(t *testing.T) {
	secret := "ghp" + "_" + strings.Repeat("a1B2", 9)
	line := strings.Repeat("word ", 20) + "\n"
	long := strings.Repeat(line, 3000) // more than is searched at once
	for name, tt := range map[string]struct {
		file, text string
		want       []importer.Leak
	}{
		"at the start":     {"f.txt", secret + "\n", []importer.Leak{{Line: 1, Column: 1}}},
		"in lines":         {"f.txt", "a\nb " + secret + "\nand " + secret + "\n", []importer.Leak{{Line: 2, Column: 3}, {Line: 3, Column: 5}}},
		"after escapes":    {"f.toml", `a = "\q\u12\u0041\n\u00e9 ` + secret + "\"\n", []importer.Leak{{Line: 1, Column: 27}}},
		"not in a text":    {"f.txt", `\u0067` + secret[1:] + "\n", nil},
		"escaped itself":   {"f.json", `"\u0067` + secret[1:] + "\"\n", []importer.Leak{{Line: 1, Column: 2}}},
		"escape at an end": {"f.json", `"` + secret + `" \u00`, []importer.Leak{{Line: 1, Column: 2}}},
		"long":             {"f.txt", long + secret + "\n" + long + "x " + secret + "\n", []importer.Leak{{Line: 3001, Column: 1}, {Line: 6002, Column: 3}}},
		"a long line":      {"f.txt", strings.ReplaceAll(long, "\n", " ") + secret + "\n", []importer.Leak{{Line: 1, Column: len(long) + 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range tt.want {
				tt.want[i].Rule, tt.want[i].File, tt.want[i].Context = "github-token", tt.file, secret[:4]
			}
			k, err := importer.NewUncommittedFileSet(importer.FileSetOptions{Out: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Discard()
			f := k.Create(tt.file)
			for part := range strings.Lines(tt.text) {
				f.Write([]byte(part))
			}
			f.Close()
			if err := k.Err(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, k.SecretsFoundSoFar()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A result of more than 200 KB is truncated, unless big results are kept.
func TestBigResults(t *testing.T) {
	t.Chdir(t.TempDir())
	const limit = 200 << 10
	for _, tt := range []struct {
		length int
		keep   bool
		want   string
	}{
		{limit, false, strings.Repeat("x", limit)}, {limit + 7, false, importer.TruncateLongWithNote(strings.Repeat("x", limit+7), limit)}, {limit + 7, true, strings.Repeat("x", limit+7)},
	} {
		session := line(t, 1, "user", "show it") + line(t, 2, "assistant", []any{toolUse("t1", "mcp__s__show", map[string]any{})}) +
			line(t, 3, "user", []any{map[string]any{"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": strings.Repeat("x", tt.length)}}) +
			line(t, 4, "assistant", []any{textBlock("shown")})
		if err := os.WriteFile("in.jsonl", []byte(session), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := importer.Run(t.Context(), importer.Options{Files: []string{"in.jsonl"}, Out: "kit", Force: true, KeepBigResults: tt.keep, Stdout: &bytes.Buffer{}}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("kit/results/1-1.txt")
		if err != nil || string(got) != tt.want {
			t.Errorf("%d bytes, kept %v: %v, %d bytes that end with %q", tt.length, tt.keep, err, len(got), got[max(0, len(got)-60):])
		}
	}
}
