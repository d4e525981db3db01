package argv

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testOptions logs every Set as "name=value".
func testOptions(log *[]string) []OptionDefinition {
	options := []OptionDefinition{
		{Flags: "-p, --print"},
		{Flags: "-c, --continue"},
		{Flags: "-v, --version"},
		{Flags: "-r, --resume [value]"},
		{Flags: "-d2e, --debug-to-stderr", Hidden: true},
		{Flags: "--output-format <format>", Choices: []string{"text", "json", "stream-json"}},
		{Flags: "--input-format <format>"},
		{Flags: "--model <model>"},
		{Flags: "--max-turns <turns>", Hidden: true},
		{Flags: "--allowedTools, --allowed-tools <tools...>"},
		{Flags: "--add-dir <directories...>"},
	}
	for i := range options {
		name := options[i].Name()
		options[i].Set = func(value string) error {
			switch {
			case name == "version":
				return ErrStop
			case name == "max-turns" && value == "abc":
				return errors.New("must be a number")
			}
			*log = append(*log, name+"="+value)
			return nil
		}
	}
	return options
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		args     []string
		sets     []string
		operands []string
		err      string
		stop     bool
		help     bool
	}{
		"separate value":              {args: []string{"--model", "m", "hi"}, sets: []string{"model=m"}, operands: []string{"hi"}},
		"joined value":                {args: []string{"--model=m=n", "hi"}, sets: []string{"model=m=n"}, operands: []string{"hi"}},
		"empty separate value":        {args: []string{"--model", "", "hi"}, sets: []string{"model="}, operands: []string{"hi"}},
		"empty joined value":          {args: []string{"--model=", "hi"}, sets: []string{"model="}, operands: []string{"hi"}},
		"required takes an option":    {args: []string{"--model", "--print"}, sets: []string{"model=--print"}},
		"required takes the dashes":   {args: []string{"--model", "--", "hi"}, sets: []string{"model=--"}, operands: []string{"hi"}},
		"optional takes a word":       {args: []string{"-r", "id", "hi"}, sets: []string{"resume=id"}, operands: []string{"hi"}},
		"optional leaves an option":   {args: []string{"-r", "-p", "hi"}, sets: []string{"resume=", "print="}, operands: []string{"hi"}},
		"optional at the end":         {args: []string{"hi", "--resume"}, sets: []string{"resume="}, operands: []string{"hi"}},
		"optional joined to letter":   {args: []string{"-rid"}, sets: []string{"resume=id"}},
		"optional joined, empty":      {args: []string{"--resume="}, sets: []string{"resume="}},
		"cluster":                     {args: []string{"-pc", "hi"}, sets: []string{"print=", "continue="}, operands: []string{"hi"}},
		"cluster ends in value":       {args: []string{"-pcr", "id"}, sets: []string{"print=", "continue=", "resume=id"}},
		"cluster with joined value":   {args: []string{"-prid"}, sets: []string{"print=", "resume=id"}},
		"cluster with unknown letter": {args: []string{"-px"}, sets: []string{"print="}, err: "error: unknown option '-x'"},
		"long short option":           {args: []string{"-d2e"}, sets: []string{"debug-to-stderr="}},
		"repeated":                    {args: []string{"--model=a", "--model", "b"}, sets: []string{"model=a", "model=b"}},
		"variadic until option":       {args: []string{"--add-dir", "a", "b", "-p", "hi"}, sets: []string{"add-dir=a", "add-dir=b", "print="}, operands: []string{"hi"}},
		"variadic until dashes":       {args: []string{"--add-dir", "a", "--", "-p"}, sets: []string{"add-dir=a"}, operands: []string{"-p"}},
		"variadic joined takes one":   {args: []string{"--add-dir=a", "hi"}, sets: []string{"add-dir=a"}, operands: []string{"hi"}},
		"variadic takes a lone dash":  {args: []string{"--add-dir", "a", "-"}, sets: []string{"add-dir=a", "add-dir=-"}},
		"second spelling":             {args: []string{"--allowed-tools", "a"}, sets: []string{"allowedTools=a"}},
		"dashes":                      {args: []string{"--", "--model", "x"}, operands: []string{"--model", "x"}},
		"second dashes are a word":    {args: []string{"--", "--"}, operands: []string{"--"}},
		"lone dash is a word":         {args: []string{"-"}, operands: []string{"-"}},
		"empty word":                  {args: []string{""}, operands: []string{""}},
		"stop":                        {args: []string{"--model", "m", "-v", "--frobnicate"}, sets: []string{"model=m"}, stop: true},
		"stop in a cluster":           {args: []string{"-pv"}, sets: []string{"print="}, stop: true},
		"stop after an unknown":       {args: []string{"--frobnicate", "-v"}, stop: true},
		"help":                        {args: []string{"--frobnicate", "--help"}, help: true},
		"help in a cluster":           {args: []string{"-ph"}, sets: []string{"print="}, help: true},
		"help as a value":             {args: []string{"--model", "--help"}, sets: []string{"model=--help"}},
		"missing":                     {args: []string{"--output-format"}, err: "error: option '--output-format <format>' argument missing"},
		"missing, two spellings":      {args: []string{"--allowed-tools"}, err: "error: option '--allowedTools, --allowed-tools <tools...>' argument missing"},
		"bad choice":                  {args: []string{"--output-format", "xml"}, err: "error: option '--output-format <format>' argument 'xml' is invalid. Allowed choices are text, json, stream-json."},
		"bad value":                   {args: []string{"--max-turns=abc"}, err: "error: option '--max-turns <turns>' argument 'abc' is invalid. must be a number"},
		"bad value before unknown":    {args: []string{"--frobnicate", "--max-turns", "abc"}, err: "error: option '--max-turns <turns>' argument 'abc' is invalid. must be a number"},
		"unknown":                     {args: []string{"--frobnicate"}, err: "error: unknown option '--frobnicate'"},
		"first unknown of two":        {args: []string{"--frobnicate", "--brobnicate"}, err: "error: unknown option '--frobnicate'"},
		"unknown, near":               {args: []string{"--outputs-format", "json"}, err: "error: unknown option '--outputs-format'\n(Did you mean --output-format?)"},
		"unknown, joined value":       {args: []string{"--modell=m"}, err: "error: unknown option '--modell=m'\n(Did you mean --model?)"},
		"unknown, several near":       {args: []string{"--oput-format"}, err: "error: unknown option '--oput-format'\n(Did you mean one of --input-format, --output-format?)"},
		"unknown, hidden one near":    {args: []string{"--max-turn"}, err: "error: unknown option '--max-turn'"},
		"unknown letter":              {args: []string{"-x"}, err: "error: unknown option '-x'"},
		"value for a switch":          {args: []string{"--print=1"}, err: "error: unknown option '--print=1'\n(Did you mean --print?)"},
		"unknown in mid line":         {args: []string{"hi", "--frobnicate", "--model", "m"}, sets: []string{"model=m"}, err: "error: unknown option '--frobnicate'"},
		"option inside option's word": {args: []string{"--print", "--model=--print"}, sets: []string{"print=", "model=--print"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var sets []string
			got, err := Parse(testOptions(&sets), tt.args)
			if tt.stop != errors.Is(err, ErrStop) {
				t.Fatalf("error %v, want stop %v", err, tt.stop)
			}
			text := ""
			if usage := (*Error)(nil); errors.As(err, &usage) {
				text = usage.Text
			}
			if diff := cmp.Diff(tt.err, text); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.sets, sets); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
			if tt.err == "" && !tt.stop {
				if diff := cmp.Diff(tt.operands, got.Operands); diff != "" {
					t.Errorf("operands (-want +got):\n%s", diff)
				}
			}
			if got.Help != tt.help {
				t.Errorf("help %v, want %v", got.Help, tt.help)
			}
		})
	}
}

func TestParseReportsTheSwallowedWord(t *testing.T) {
	for args, want := range map[string]string{
		"-p --allowedTools hi":       "--allowedTools hi",
		"-p --allowed-tools Bash hi": "--allowedTools hi",
		"-p --allowedTools=Bash":     " ",
		"-p --model hi":              " ",
		"-r hi":                      " ",
	} {
		var log []string
		got, err := Parse(testOptions(&log), strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if s := got.VariadicWord.Option + " " + got.VariadicWord.Word; s != want {
			t.Errorf("%s: swallowed %q, want %q", args, s, want)
		}
	}
}

func TestParseLeavesItsArgumentsAlone(t *testing.T) {
	args := []string{"-pc", "--add-dir", "a"}
	var log []string
	if _, err := Parse(testOptions(&log), args); err != nil {
		t.Fatal(err)
	}
	if want := []string{"-pc", "--add-dir", "a"}; !slices.Equal(args, want) {
		t.Errorf("args are %q now", args)
	}
}

// FuzzParse parses a command line whose words are separated by newlines. Every word is an operand, a value, an option,
// or the reason for an error. Parsing twice gives the same result.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "-p\nhi", "-pc\n--model=x\nhi", "--add-dir\na\nb\n--\n-p", "--output-format\nxml", "-rid", "-pxh", "--=", "--=x", "-", "--\n--", "-d2e", "-p-", "--resume=\n-c", "-\x00", "-é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, "\n")
		var sets, again []string
		got, err := Parse(testOptions(&sets), args)
		second, err2 := Parse(testOptions(&again), args)
		if diff := cmp.Diff(sets, again) + cmp.Diff(got, second); diff != "" || (err == nil) != (err2 == nil) {
			t.Fatalf("two runs differ:\n%s", diff)
		}
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a text")
			}
			return
		}
		for _, word := range got.Operands {
			if !slices.Contains(args, word) {
				t.Errorf("operand %q is no word of %q", word, args)
			}
		}
		for _, entry := range sets {
			_, value, _ := strings.Cut(entry, "=")
			if !strings.Contains(line, value) {
				t.Errorf("value %q is nowhere in %q", value, args)
			}
		}
	})
}
