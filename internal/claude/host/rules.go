package host

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ruleRow is one rule as list_permission_rules shows it.
type ruleRow struct {
	Behavior    string           `json:"behavior"`
	Source      string           `json:"source"`
	Rule        string           `json:"rule"`
	Description *ruleDescription `json:"description,omitempty"`
	Editability string           `json:"editability"` // persistent, readonly, session
}

type ruleDescription struct {
	Prefix   string `json:"prefix"`
	Emphasis string `json:"emphasis,omitempty"`
	Suffix   string `json:"suffix,omitempty"`
}

type permissionRulesAnswer struct {
	State permissionRulesState `json:"state"`
}

type permissionRulesState struct {
	ManagedOnly bool                   `json:"managedOnly"`
	CWD         string                 `json:"originalCwd"`
	Rules       []ruleRow              `json:"rules"`
	Directories []permission.Directory `json:"workspaceDirectories"`
}

// permissionRules handles list_permission_rules: allow, ask and deny rules, grouped by source.
func permissionRules(s *session.Session) permissionRulesAnswer {
	list := []ruleRow{}
	for _, r := range s.Policy().Rules() {
		parts := r.Parts()
		row := ruleRow{Behavior: r.Behavior, Source: r.Source, Rule: permission.FormatRule(parts), Description: describeRule(parts), Editability: "session"}
		switch r.Source {
		case "userSettings", "projectSettings", "localSettings":
			row.Editability = "persistent"
		case "flagSettings", "policySettings":
			row.Editability = "readonly"
		}
		list = append(list, row)
	}
	behaviors := []string{permission.BehaviorAllow, permission.BehaviorAsk, permission.BehaviorDeny}
	sources := []string{"userSettings", "projectSettings", "localSettings", "flagSettings", "policySettings", "cliArg", "command", "session"}
	slices.SortStableFunc(list, func(a, b ruleRow) int {
		return cmp.Or(
			slices.Index(behaviors, a.Behavior)-slices.Index(behaviors, b.Behavior),
			slices.Index(sources, a.Source)-slices.Index(sources, b.Source))
	})
	return permissionRulesAnswer{permissionRulesState{CWD: s.Plan().CWD, Rules: list, Directories: s.Policy().AdditionalDirectories()}}
}

// describeRule describes in words what a rule covers. It returns nil if the rule needs no explanation.
func describeRule(r protocol.PermissionRule) *ruleDescription {
	switch {
	case r.RuleContent == "" && r.ToolName == "Bash":
		return &ruleDescription{Prefix: "Any Bash command"}
	case r.RuleContent == "":
		return &ruleDescription{Prefix: "Any use of the ", Emphasis: r.ToolName, Suffix: " tool"}
	case r.ToolName != "Bash":
		return nil
	}
	for _, wildcard := range []string{":*", " *"} {
		if start, ok := strings.CutSuffix(r.RuleContent, wildcard); ok {
			return &ruleDescription{Prefix: "Any Bash command starting with ", Emphasis: start}
		}
	}
	return &ruleDescription{Prefix: "The Bash command ", Emphasis: r.RuleContent}
}
