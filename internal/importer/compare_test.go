package importer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/importer/session"
)

// TestEvents checks which parts of a recorded session are compared with the session that the imported scenario plays.
func TestEvents(t *testing.T) {
	at := func(line int) session.Place { return session.Place{Line: line} }
	call := func(tool, input string, r *session.Result) session.Block {
		return session.Block{Call: &session.Call{At: at(3), Tool: tool, Input: []byte(input), Result: r}}
	}
	agent := call("Task", `{}`, &session.Result{At: at(5), Text: "told"})
	agent.Call.Agent = &session.Agent{Messages: []*session.Message{{At: at(4), Blocks: []session.Block{{Text: "unseen"}, call("Read", `{}`, nil)}}}}
	sessions := []*session.Session{{Prompts: []*session.Prompt{
		{At: at(1), Messages: []*session.Message{{At: at(2), Blocks: []session.Block{
			{Text: "hello"},
			{},
			{Thinking: true, Text: "hm"},
			{Thinking: true},
			call("Bash", `{"command":"cat /w/a"}`, &session.Result{At: at(4), Text: "four" + truncationMark + "9 bytes"}),
			call("Read", `{}`, &session.Result{At: at(4), Text: "long text", IsError: true}),
			call("Write", `{}`, &session.Result{At: at(4), Text: "no", Denied: true}),
			call("Edit", `{}`, &session.Result{At: at(4), Text: "Error: " + ScriptedErrorTextOfDeniedTool("Edit")}), agent,
		}}}},
		{At: at(6), IsNotice: true},
	}}}
	for _, tt := range []struct {
		o    CompareOptions
		want []string
	}{
		{CompareOptions{}, []string{
			"1 prompt", "2 text hello", `3 call Bash {"command":"cat a"}`, "4 result four", "3 call Read {}", "4 error long text", "3 call Write {}", "4 denied",
			"3 call Edit {}", "4 denied", "3 call Task {}", "3   call Read {}", "5 result of the agent",
		}},
		{CompareOptions{Thinking: true, MaxResultBytes: 4}, []string{
			"1 prompt", "2 text hello", "2 thinking hm", `3 call Bash {"command":"cat a"}`, "4 result four", "3 call Read {}", "4 error long", "3 call Write {}", "4 denied",
			"3 call Edit {}", "4 result Erro", "3 call Task {}", "3   call Read {}", "5 result of the agent",
		}},
	} {
		var got []string
		for _, e := range collectComparableSessionEvents(sessions, map[string]string{"/w": "<cwd>"}, tt.o) {
			got = append(got, fmt.Sprintf("%d %s", e.place.Line, e.comparedText))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.o, diff)
		}
	}
}

// Differences contain the position in the recording and the position at which the texts begin to differ. At most twenty
// are listed.
func TestDifferences(t *testing.T) {
	list := func(texts ...string) (all []comparableSessionEvent) {
		for i, text := range texts {
			all = append(all, comparableSessionEvent{session.Place{File: "in", Line: i + 1}, text})
		}
		return all
	}
	many := strings.Split(strings.Repeat("x ", 22), " ")
	same := "text " + strings.Repeat("a", 40)
	for _, tt := range []struct {
		name             string
		recorded, played []comparableSessionEvent
		want             []string
	}{
		{"the same", list("a", "b"), list("a", "b"), nil},
		{"another, one more", list("a"), list("b", "c"), []string{`in:1: recorded "a", played "b"`, `after the end: recorded nothing, played "c"`}},
		{"one less", list("a", "b"), list("a"), []string{`in:2: recorded "b", played nothing`}},
		{"a long beginning", list(same + "1"), list(same + "2"), []string{
			`in:1: recorded "text …` + strings.Repeat("a", 20) + `1", played "text …` + strings.Repeat("a", 20) + `2"`,
		}},
	} {
		if diff := cmp.Diff(tt.want, compareEvents(tt.recorded, tt.played)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if got := compareEvents(list(many...), nil); len(got) != 21 || got[20] != "and more" {
		t.Errorf("%d differences, the last %q", len(got), got[len(got)-1])
	}
}

// A secret is found once, at its position in the file. Escapes are resolved only in formats that have them, and secrets
// are found even across the parts in which a long file is read.
func TestAuditPositions(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	filler := strings.Repeat("nothing to see here\n", 20_000)
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"a.txt":   {"one\n  " + token + "\nand\n" + token, []string{"2:3", "4:1"}},
		"b.toml":  {`x = "\u0067` + token[1:] + `"`, []string{"1:6"}},
		"c.txt":   {`x = "\u0067` + token[1:] + `"`, nil},
		"d.json":  {"{\n\"a\": \"\\n\\t\\\"\\\\" + token + "\\" + "\"}", []string{"2:15"}},
		"e.txt":   {filler + token + "\n" + filler + "  " + token, []string{"20001:1", "40002:3"}},
		"f.jsonl": {`"\x \u00zz \` + token, []string{"1:13"}},
		"g.toml":  {"nothing", nil},
	} {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		leaks, err := FindSecretsInFiles([]string{file}, CurrentEnvironment{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range leaks {
			got = append(got, fmt.Sprintf("%d:%d", l.Line, l.Column))
			if l.Context != token[:4] {
				t.Errorf("%s: the context is %q", name, l.Context)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
