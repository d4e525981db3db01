package verdict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claudeless/claudeless/internal/base/diag"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/tomltext"
	"github.com/claudeless/claudeless/scenarios"
)

// AnswerPlaceholder is the answer in the rules of [TOMLRuleWithPlaceholderAnswer]. The user is expected to replace it.
const AnswerPlaceholder = "write the answer here"

// TOMLRuleWithPlaceholderAnswer returns a rule, in TOML, that matches a prompt.
func TOMLRuleWithPlaceholderAnswer(prompt string) string {
	return fmt.Sprintf("[[responses]]\npattern = { type = \"exact\", text = %s }\nresponse = %s\n", tomltext.BasicString(prompt), tomltext.BasicString(AnswerPlaceholder))
}

// WriteMissingRules adds a rule for each prompt to a scenario file atomically. If a prompt would still match no rule,
// it returns an error and does not change the file.
func WriteMissingRules(ctx context.Context, file string, prompts []string) error {
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("cannot add rules to the scenario file: %w", err)
	}
	src, err := diag.ReadRegularFile(file)
	if err != nil {
		return err
	}
	out, err := insertRulesForPromptsIntoTOML(file, src, prompts)
	if err != nil {
		return err
	}
	scenario, err := scenarios.Parse(file, out, scenarios.LoadOptions{})
	if err != nil {
		return err
	}
	for _, prompt := range prompts {
		reply, err := scenarios.NewEngine(scenario, scenarios.EngineOptions{}).Next(ctx, scenarios.Request{Prompt: prompt})
		if err == nil && reply.IsUnmatched {
			err = fmt.Errorf("cannot add a rule for the prompt %q: the new rule would not match it; add a rule by hand", prompt)
		}
		if err != nil {
			return err
		}
	}
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	return plainjson.ReplaceFile(target, out, info.Mode())
}

// ErrInlineRules reports that the rules of a file are not separate tables, so that none can be appended.
var ErrInlineRules = errors.New("cannot add a rule, because the scenario does not write its rules as [[responses]] tables: add the rule by hand")

// insertRulesForPromptsIntoTOML adds a rule for each distinct prompt after the rules of a file. The rest of the file, including
// comments, is unchanged. It does not check whether the prompts already have rules.
func insertRulesForPromptsIntoTOML(file string, scenarioTOML []byte, prompts []string) ([]byte, error) {
	line, err := lineOfFirstTableAfterRules(diag.IndexTOML(file, scenarioTOML))
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(scenarioTOML), "\n")
	if line == 0 || line > len(lines) {
		line = len(lines) + 1
	}
	head, rest := strings.Join(lines[:line-1], ""), lines[line-1:]
	// Comments directly above a table belong to it.
	for body := lines[:line-1]; len(body) > 0 && len(rest) > 0 && strings.HasPrefix(body[len(body)-1], "#"); body = body[:len(body)-1] {
		head, rest = strings.TrimSuffix(head, body[len(body)-1]), slices.Concat(body[len(body)-1:], rest)
	}
	var b strings.Builder
	b.WriteString(head)
	if head != "" && !strings.HasSuffix(head, "\n") {
		b.WriteString("\n")
	}
	for i, prompt := range prompts {
		if slices.Contains(prompts[:i], prompt) {
			continue
		}
		if !utf8.ValidString(prompt) {
			return nil, fmt.Errorf("cannot add a rule for the prompt %+q: TOML allows only valid UTF-8; send valid UTF-8 (the real CLI replaces invalid bytes with U+FFFD)", prompt)
		}
		if written := b.String(); i > 0 || written != "" && !strings.HasSuffix(written, "\n\n") {
			b.WriteString("\n")
		}
		b.WriteString(TOMLRuleWithPlaceholderAnswer(prompt))
	}
	if len(rest) > 0 && strings.Join(rest, "") != "" {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join(rest, ""))
	return []byte(b.String()), nil
}

func lineOfFirstTableAfterRules(scenarioIndex *diag.SourceIndex) (int, error) {
	if doubt := scenarioIndex.FirstPossibleProblem(); doubt != nil {
		return 0, diag.List{*doubt}
	}
	last := 0
	if rules, ok := scenarioIndex.Lookup(diag.Path{"responses"}); ok {
		d := scenarioIndex.DiagnosticAt(diag.Path{"responses", max(0, len(rules.Items())-1)}, "")
		if last = d.Pos.Line; !strings.HasPrefix(strings.TrimSpace(d.Source), "[[") {
			return 0, ErrInlineRules
		}
	}
	var next []int
	for _, key := range scenarioIndex.Keys(nil) {
		value, _ := scenarioIndex.Lookup(diag.Path{key})
		places := []diag.Path{{key}}
		for i := range value.Items() {
			places = append(places, diag.Path{key, i})
		}
		for _, path := range places {
			if d := scenarioIndex.DiagnosticAt(path, ""); key != "responses" && d.Pos.Line > last && strings.HasPrefix(strings.TrimSpace(d.Source), "[") {
				next = append(next, d.Pos.Line)
			}
		}
	}
	if len(next) == 0 || last == 0 {
		return 0, nil
	}
	return slices.MinFunc(next, cmp.Compare), nil
}
