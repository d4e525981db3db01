package match_test

import (
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/internal/base/match"
)

func TestMatch(t *testing.T) {
	const email = `^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$` // the form in which zod writes it
	tests := []struct {
		expr, text string
		want       bool
	}{
		{"^(?!(Glob|Read)$).*", "Bash", true},
		{"^(?!(Glob|Read)$).*", "Read", false},
		{"^(?!(Glob|Read)$).*", "ReadMore", true},
		{"(?<!Multi)Edit", "NotebookEdit", true},
		{"(?<!Multi)Edit", "MultiEdit", false},
		{`^(?<a>x|y)\k<a>$`, "xx", true},
		{`^(?<a>x|y)\k<a>$`, "xy", false},
		{"^mcp__.*__write", "mcp__s__write_file", true},
		{`^\u0041$`, "A", true},
		{email, "sarah@example.com", true},
		{email, "sa..rah@example.com", false},
		{email, ".sarah@example.com", false},
	}
	for _, tt := range tests {
		re, err := match.CompileJS(tt.expr)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		if got := re.MatchString(tt.text); got != tt.want || re.String() != tt.expr {
			t.Errorf("%s on %q: %v", re, tt.text, got)
		}
	}
	for _, bad := range []string{"(", "[z-a]", "(?<!"} {
		if _, err := match.CompileJS(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestPatience(t *testing.T) {
	re, err := match.CompileJS(`^(?=(a+)+b)`)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if re.MatchString(strings.Repeat("a", 40)) {
		t.Error("there is no b")
	}
	if took := time.Since(begun); took > 10*match.JSMatchTimeout {
		t.Error("it takes", took)
	}
}
