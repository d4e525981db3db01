package session_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/importer/session"
)

var update = flag.Bool("update", false, "rewrite what the recordings in testdata are read as")

// Every archive in testdata has recordings and, in the file "want", the expected session. The comment has options,
// one per line: "branch=ID" and "contents". All recordings at the top level are read in order.
func TestRecordings(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			var files []string
			for _, f := range archive.Files {
				path := filepath.Join(dir, f.Name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, f.Data, 0o600); err != nil {
					t.Fatal(err)
				}
				if f.Name != "want" && !strings.Contains(f.Name, "/") {
					files = append(files, path)
				}
			}
			var o session.Options
			for line := range strings.Lines(string(archive.Comment)) {
				if id, found := strings.CutPrefix(strings.TrimSpace(line), "branch="); found {
					o.Branch = id
				}
				o.Contents = o.Contents || strings.TrimSpace(line) == "contents"
			}
			sessions, err := session.Read(files, o)
			var got strings.Builder
			if err != nil {
				fmt.Fprintln(&got, "error:", err)
			}
			for _, s := range sessions {
				writeSession(&got, s)
			}
			text := strings.ReplaceAll(got.String(), dir+string(filepath.Separator), "")
			i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want" })
			if i < 0 {
				t.Fatal("there is no file \"want\"")
			}
			if *update {
				archive.Files[i].Data = []byte(text)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(archive.Files[i].Data), text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// facts joins pairs of a name and a value; empty values are omitted.
func facts(pairs ...string) string {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if value := pairs[i+1]; value != "" && value != "false" && value != "0" && value != "[]" && value != "map[]" {
			fmt.Fprintf(&b, " %s=%s", pairs[i], value)
		}
	}
	return b.String()
}

func writeSession(b *strings.Builder, s *session.Session) {
	fmt.Fprintf(b, "session %q%s\n", s.ID, facts("cwd", s.CWD, "version", s.Version, "mode", s.Mode, "date", s.Date, "files", fmt.Sprint(s.Files),
		"tools", fmt.Sprint(s.Tools), "environ", fmt.Sprint(s.Environ), "ids", fmt.Sprint(s.IDs),
		"unknown", fmt.Sprint(s.UnknownLines), "compacted", fmt.Sprint(s.Compacted)))
	for _, d := range s.Damaged {
		fmt.Fprintf(b, "  damaged: %s\n", d.String())
	}
	for _, p := range s.Prompts {
		fmt.Fprintf(b, "  prompt %s %q%s\n", p.At, p.Text, facts("unrecorded", fmt.Sprint(p.TextMissing), "notice", fmt.Sprint(p.IsNotice), "other", fmt.Sprint(p.OtherParts)))
		for _, h := range p.Hooks {
			fmt.Fprintf(b, "    hook %s%s\n", h.Name, facts("outcome", h.Outcome))
		}
		writeMessages(b, "    ", p.Messages)
	}
}

func writeMessages(b *strings.Builder, indent string, messages []*session.Message) {
	for _, m := range messages {
		if f := m.Failure; f != nil {
			status, text := f.APIError()
			fmt.Fprintf(b, "%sfailure %s %d %q (%d %q)\n", indent, m.At, f.Status, f.Text, status, text)
			continue
		}
		fmt.Fprintf(b, "%smessage %s%s\n", indent, m.At, facts("stop", m.StopReason))
		for _, block := range m.Blocks {
			switch c := block.Call; {
			case c != nil:
				fmt.Fprintf(b, "%s  call %s %s %s%s\n", indent, c.At, c.Tool, c.Input, facts("harmless", fmt.Sprint(c.IsBuiltInCallWithoutChanges())))
				if r := c.Result; r != nil {
					fmt.Fprintf(b, "%s    result %s %q%s\n", indent, r.At, r.Text, facts("error", fmt.Sprint(r.IsError), "denied", fmt.Sprint(r.Denied), "other", fmt.Sprint(r.OtherParts), "raw", string(r.Raw)))
					if r.File != nil {
						fmt.Fprintf(b, "%s    file %s %q%s\n", indent, r.File.Path, r.File.Content, facts("whole", fmt.Sprint(r.File.IsComplete)))
					}
				}
				if a := c.Agent; a != nil {
					fmt.Fprintf(b, "%s    agent%s\n", indent, facts("id", a.ID, "type", a.Type, "prompt", a.Prompt, "background", fmt.Sprint(a.Background)))
					writeMessages(b, indent+"      ", a.Messages)
				}
			case block.Thinking:
				fmt.Fprintf(b, "%s  thinking %q\n", indent, block.Text)
			default:
				fmt.Fprintf(b, "%s  text %q\n", indent, block.Text)
			}
		}
	}
}
