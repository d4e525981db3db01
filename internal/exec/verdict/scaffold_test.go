package verdict

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/scenarios"
)

// An accepted rule is appended after the others, and the rest of the file is unchanged.
func TestAccept(t *testing.T) {
	const rule = "[[responses]]\npattern = { type = \"exact\", text = \"say \\\"hi\\\"\" }\nresponse = \"write the answer here\"\n"
	for _, tt := range []struct{ name, src, want string }{
		{"an empty file", "", rule},
		{"keys alone", "# mine\nunmatched = \"error\"", "# mine\nunmatched = \"error\"\n\n" + rule},
		{
			"behind the last rule, before what is for the next table",
			"[[responses]] # one\npattern = { type = \"any\" }\nwhen = \"false\"\nresponse = \"\"\"\n[[expect]]\n\"\"\"\n\n# what must happen\n[[expect]]\ntool = \"Bash\"\n",
			"[[responses]] # one\npattern = { type = \"any\" }\nwhen = \"false\"\nresponse = \"\"\"\n[[expect]]\n\"\"\"\n\n" + rule + "\n# what must happen\n[[expect]]\ntool = \"Bash\"\n",
		},
		{
			"behind its turns", "[mcp]\n[[responses]]\npattern = \"x\"\n[[responses.turns]]\nexpect = \"y\"\n",
			"[mcp]\n[[responses]]\npattern = \"x\"\n[[responses.turns]]\nexpect = \"y\"\n\n" + rule,
		},
		{"tables before any rule", "[[expect]]\ntool = \"Bash\"\n", "[[expect]]\ntool = \"Bash\"\n\n" + rule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := insertRulesForPromptsIntoTOML("s.toml", []byte(tt.src), []string{`say "hi"`, `say "hi"`})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := insertRulesForPromptsIntoTOML("s.toml", []byte("responses = [ { pattern = \"x\" } ]\n"), []string{"y"}); !errors.Is(err, ErrInlineRules) {
		t.Errorf("rules in a line: %v", err)
	}
	if _, err := insertRulesForPromptsIntoTOML("s.toml", []byte("a = = 1\n"), []string{"y"}); err == nil {
		t.Error("a file that is none is written to")
	}
}

// FuzzAccept: the new rule matches its prompt and is the only change. Prompts that are not valid UTF-8 are refused.
func FuzzAccept(f *testing.F) {
	for _, prompt := range []string{"x", `a "quoted" one`, "two\nlines\n", "\"\"\"", "\\", "\x7f\u2028", "#", "\x00", "\ufffd", "\xf1"} {
		f.Add(prompt)
	}
	const src = "# head\n[[responses]]\npattern = { type = \"exact\", text = \"known\" }\nresponse = \"yes\"\n\n[[expect]]\ntool = \"Bash\"\n"
	f.Fuzz(func(t *testing.T, prompt string) {
		out, err := insertRulesForPromptsIntoTOML("s.toml", []byte(src), []string{prompt})
		if (err == nil) != utf8.ValidString(prompt) {
			t.Fatalf("a rule for %+q: %v", prompt, err)
		}
		if err != nil {
			return
		}
		s, err := scenarios.Parse("s.toml", out, scenarios.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Responses[len(s.Responses)-1].Matcher().Match(prompt); !ok || len(s.Responses) != 2 || len(s.Expect) != 1 {
			t.Errorf("%q is not answered by\n%s", prompt, out)
		}
	})
}
