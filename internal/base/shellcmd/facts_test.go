package shellcmd

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite what testdata/facts.txtar expects")

// wordFacts describes a word in one line.
func wordFacts(w Word) string {
	var facts []string
	for _, flag := range []struct {
		set  bool
		name string
	}{{w.IsDynamic, "dynamic"}, {w.StartsWithTilde, "tilde"}, {w.IsDollarQuoted, "coded"}, {w.HasExtraSpace, "spaced"}} {
		if flag.set {
			facts = append(facts, flag.name)
		}
	}
	switch {
	case w.Paths == nil:
		facts = append(facts, "unknown")
	case len(w.Paths) > 8:
		return fmt.Sprintf("%d paths", len(w.Paths))
	}
	for _, p := range w.Paths {
		text := fmt.Sprintf("%q", p.Name)
		if p.Home {
			text = "home+" + text
		}
		if p.Glob != "" {
			text += fmt.Sprintf(" glob %q", p.Glob)
		}
		facts = append(facts, text)
	}
	if w.Value != "" {
		facts = append(facts, fmt.Sprintf("value %q", w.Value))
	}
	return strings.Join(append(facts, fmt.Sprintf("shape %q", w.Shape)), ", ")
}

// commandFacts describes what a command runs: the command without its wrappers, and the script that it passes on.
func commandFacts(c Command) string {
	var facts []string
	add := func(name, value string) {
		if value != strings.Join(c.Args, " ") {
			facts = append(facts, name+": "+value)
		}
	}
	text := func(c Command) string { return strings.Join(c.Args, " ") }
	add("programs", strings.Join(c.UnwrappedCommandLines(), " | "))
	add("unwrapped", text(c.WithoutBuiltinAndTimeoutPrefix()))
	add("wrapped", text(c.WithoutUnprivilegedWrappers()))
	add("removal", text(Script{}.WithoutWrappersBeforeRemoval(c)))
	add("innermost", text(c.Innermost()))
	if script := c.NestedScript(); script != "" {
		add("nested", fmt.Sprintf("%q", script))
	}
	if script := c.ShellScript(); script != "" {
		add("shell script", fmt.Sprintf("%q", script))
	}
	return strings.Join(facts, "\n")
}

// textFacts returns a command's text, and what precedes and follows its words.
func textFacts(c Command) string {
	facts := []string{fmt.Sprintf("%q", c.Text)}
	for _, flag := range []struct {
		set  bool
		name string
	}{{c.IsTimed, "timed"}, {c.Interleaved, "interleaved"}, {c.Redirected, "redirected"}} {
		if flag.set {
			facts = append(facts, flag.name)
		}
	}
	for _, assignment := range c.Assignments {
		name, _, _ := strings.Cut(assignment, "=")
		facts = append(facts, "sets "+name)
	}
	for _, r := range c.Redirects {
		fact := r.Op + " " + r.Target
		if r.Word.Paths == nil {
			fact += " unknown"
		}
		if r.ReadsFile {
			fact += " reads"
		}
		if r.WritesFile {
			fact += " writes"
		}
		facts = append(facts, fact)
	}
	return strings.Join(facts, ", ")
}

// scriptFacts returns the facts about a script that the permission engine uses.
func scriptFacts(s Script) string {
	var facts []string
	for _, flag := range []struct {
		set  bool
		name string
	}{{s.IsReadOnly(), "reads"}, {s.IsOpaque, "opaque"}, {s.IsPipeline, "pipeline"}, {s.SubshellList, "list in a subshell"}, {s.IsInputFileListFromPipeline(len(s.Commands) - 1), "listed"}} {
		if flag.set {
			facts = append(facts, flag.name)
		}
	}
	if s.Obstacle != (Obstacle{}) {
		facts = append(facts, strings.TrimSpace("obstacle: "+string(s.Obstacle.Kind)+" "+s.Obstacle.Text))
	}
	return strings.Join(facts, ", ")
}

// searchFacts describes what the search for removals uses: how clear a command is, where it is, and the scripts in it.
func searchFacts(s Script) string {
	facts := []string{strings.TrimSpace(fmt.Sprintf("analysed %t, evaluator %q, groups %q, unclear %q, assignments %q", s.HasOnlyHarmlessObstacle(), s.FirstProgramNeedingPermissionDespiteRule(), s.Groups, s.Unclear, s.LeadingAssignmentLines()))}
	for _, c := range s.Commands {
		name, rest := c.FindUnquotedRmOrRmdir()
		var fact strings.Builder
		fmt.Fprintf(&fact, "%q: clarity %d, removal %s %q, unwrapped %q", c.Text, c.Clarity, name, rest.Args, s.WithoutWrappersBeforeRemoval(c).Args)
		for _, flag := range []struct {
			set  bool
			name string
		}{{c.IsHidden, "hidden"}, {c.IsInFunction, "in a function"}, {c.IsOutputPiped, "piped"}, {c.IsContinued, "continued"}, {s.IsBroken, "broken"}, {s.HasOpenQuote, "open quote"}, {s.IsNotFullyAnalysedByRealCLI(c), "complex"}, {c.PassesUnclearScriptToShell([]string{"A"}), "unclear script"}} {
			if flag.set {
				fact.WriteString(", " + flag.name)
			}
		}
		if script := c.WrapperOptionScript(); script != "" {
			fmt.Fprintf(&fact, ", option %q", script)
		}
		for _, w := range c.WithVariableValuesFromScript().Words {
			fmt.Fprintf(&fact, " %q", w.Shape)
		}
		facts = append(facts, fact.String())
	}
	return strings.Join(facts, "\n")
}

// TestFacts checks the facts about command lines that are known before they run. testdata/facts.txtar explains its
// format.
func TestFacts(t *testing.T) {
	const name = "testdata/facts.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range archive.Files {
		var got strings.Builder
		for line := range strings.Lines(string(file.Data)) {
			command, found := strings.CutPrefix(line, "$ ")
			if found || strings.HasPrefix(line, "#") || line == "\n" {
				got.WriteString(line)
			}
			if !found {
				continue
			}
			s, err := Parse(strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(strings.TrimSuffix(command, "\n")))
			facts := ""
			switch last := s.Commands[max(0, len(s.Commands)-1):]; {
			case file.Name == "searches":
				facts = strings.TrimSpace(fmt.Sprintf("%s\nmistake: %v", searchFacts(s), err))
			case err != nil:
				facts = "mistake: " + err.Error()
			case file.Name == "scripts":
				facts = scriptFacts(s)
			case file.Name == "texts":
				for i, c := range s.Commands {
					facts += strings.Repeat("\n", min(i, 1)) + textFacts(c)
				}
			case file.Name == "commands" && len(last) > 0:
				facts = commandFacts(last[0])
			case len(last) > 0 && len(last[0].Words) > 0:
				facts = wordFacts(last[0].Words[len(last[0].Words)-1])
			}
			if facts != "" {
				got.WriteString("  " + strings.ReplaceAll(facts, "\n", "\n  ") + "\n")
			}
		}
		if *update {
			archive.Files[i].Data = []byte(got.String())
			continue
		}
		if diff := cmp.Diff(string(file.Data), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
