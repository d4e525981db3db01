package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/internal/record/journal"
	"github.com/claudeless/claudeless/simulator/protocol"
)

type startupQuestions struct {
	console        *Console
	plan           *launch.Plan
	apiKey         string // empty means none
	globalConfig   plainjson.Object
	hasWrittenFile bool  // a file was written
	endError       error // ErrStartDeclined, or the error that prevented saving an answer
}

// WriteStartupAnswersToJournal writes the answers of [AskStartupQuestions] to the journal, for runs that end without a session.
func (c *Console) WriteStartupAnswersToJournal(plan *launch.Plan) error {
	if plan.Records.Capture == "" || len(c.answeredDialogs) == 0 {
		return nil
	}
	file, err := os.OpenFile(plan.Records.Capture, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	log := journal.New(journal.Options{W: file, Now: c.sys.Now, PID: c.sys.PID, Environ: c.sys.Environ})
	for _, line := range c.answeredDialogs {
		log.Write(line)
	}
	return log.Err()
}

// AskStartupQuestions asks the questions that come before a session: trust of the folder, use of the API key, servers of .mcp.json, and
// bypassed permissions. It saves the answers in the real CLI's files. The error is [ErrStartDeclined] if the user declined.
//
// Only a user who has completed the set-up, according to the configuration file, is asked about trust, the key and bypassed permissions.
// For trust, the scenario can override this. If filesChanged is true, the plan must be resolved again.
func AskStartupQuestions(ctx context.Context, c *Console, plan *launch.Plan, apiKey string) (filesChanged bool, err error) {
	s := &startupQuestions{console: c, plan: plan, apiKey: apiKey}
	s.globalConfig, _ = plainjson.ReadFileOrEmpty(plan.Store.File) // cannot fail, because a broken file was refused before
	for d := range s.questionDialogs {
		if d == nil {
			continue
		}
		d.state, d.topRuleGlyph = StateStartupOrAutoModeDialog, ruleGlyph
		if d.foot == nil {
			d.foot = []string{"", strings.Repeat(" ", d.indent) + c.screen.labels.findLabelOrPrefix("dialog", "Enter to confirm") + " · Esc to cancel"}
		}
		c.screen.labels.orderAndSelectOptionsByAnchors(d, "dialog/"+d.kind)
		c.screen.labels.pages.copyCapturedTextsIntoDialog(d)
		owner := d.owner
		d.owner = choiceHandlerFunc(func(answer dialogChoice) *dialog {
			label := "cancelled"
			if !answer.cancelled {
				label = d.options[answer.index].label
			}
			c.answeredDialogs = append(c.answeredDialogs, d.journalLine(label, !answer.cancelled && !isRefusalLabel(label)))
			if answer.key == 0 {
				_ = owner.handleChoice(d, answer) // start-up dialogs have no next dialog
			} else if s.endError = ErrStartDeclined; d.kind == "bypass" {
				s.endError = ErrDialogCancelled
			}
			if d.kind == "trust" && errors.Is(s.endError, ErrStartDeclined) {
				s.endError = errors.Join(ErrUntrustedFolder, s.endError)
			}
			return nil
		})
		if err := c.showDialogsUntilAnswered(ctx, d); err != nil {
			return s.hasWrittenFile, err
		}
		if s.endError != nil && d.kind != "key" && d.kind != "mcp" { // when the program ends, only the key and mcp dialogs are erased
			return s.hasWrittenFile, s.endError
		}
		if err := c.painter.paint(screenFrame{rows: []string{""}, bottomIndex: -1}, c.screen.cols, c.screen.rows); err != nil || s.endError != nil {
			return s.hasWrittenFile, errors.Join(s.endError, err)
		}
	}
	s.showAutoModeNoticeOnce()
	return s.hasWrittenFile, s.endError
}

// showAutoModeNoticeOnce shows once, in the first session, that auto mode is the default.
func (s *startupQuestions) showAutoModeNoticeOnce() {
	const key, bar = "hasSeenAutoDefaultNotice", "▎"
	if s.plan.Permission.Mode != protocol.ModeAuto || !s.hasUserCompletedOnboarding() || string(s.globalConfig.Get(key)) == "true" {
		return
	}
	s.console.noticeRows = slices.DeleteFunc(s.console.screen.labels.pages.findPageWithMostSlotsFor("idle/auto-notice", nil).Lines(), func(row string) bool { return !strings.HasPrefix(row, bar) })
	if len(s.console.noticeRows) == 0 {
		s.console.noticeRows = []string{bar + " Auto mode is now Claude Code's default permission mode."}
	}
	s.rewriteJSONFile(s.plan.Store.File, func(o plainjson.Object) plainjson.Object { return o.Set(key, json.RawMessage("true")) })
}

func (s *startupQuestions) hasUserCompletedOnboarding() bool {
	return string(s.globalConfig.Get("hasCompletedOnboarding")) == "true"
}

// questionDialogs yields the dialog of each question, or nil if the question needs no answer.
func (s *startupQuestions) questionDialogs(yield func(*dialog) bool) {
	_ = yield(s.trustDialogIfNeeded()) && yield(s.apiKeyDialogIfNeeded()) && yield(s.serversDialogIfNeeded()) && yield(s.bypassModeDialogIfNeeded())
}

func (s *startupQuestions) trustDialogIfNeeded() *dialog {
	scripted := s.plan.Scenario.Trusted
	if scripted != nil && *scripted || scripted == nil && !s.hasUserCompletedOnboarding() || s.isFolderTrusted() {
		return nil
	}
	d := &dialog{kind: "trust", indent: 1, slotValues: map[string]string{"dir": s.plan.CWD}, head: []string{
		" Accessing workspace:", "", " " + s.plan.CWD, "",
		" Quick safety check: Is this a project you created or one you trust?", "",
	}}
	d.options = s.optionsWithLabelPrefixes("trust", "No, exit", "Yes, I trust")
	d.owner = s.newConsentDialogOwner(d, s.plan.Store.File, func(o plainjson.Object) plainjson.Object {
		const keyOfTrust = "hasTrustDialogAccepted"
		path, value := []string{"projects", s.plan.CWD}, `{"allowedTools":[],"mcpContextUris":[],"mcpServers":{},"enabledMcpjsonServers":[],"disabledMcpjsonServers":[],"`+keyOfTrust+`":true,"hasClaudeMdExternalIncludesApproved":false,"hasClaudeMdExternalIncludesWarningShown":false}`
		if o.At(path...) != nil {
			path, value = append(path, keyOfTrust), "true"
		}
		trusted, err := o.SetAt(path, json.RawMessage(value))
		s.endError = err
		return trusted
	})
	return d
}

// newConsentDialogOwner returns the owner of d. A refusal ends the run; consent changes the file at configPath.
func (s *startupQuestions) newConsentDialogOwner(d *dialog, configPath string, changeOnConsent func(plainjson.Object) plainjson.Object) dialogOwner {
	return choiceHandlerFunc(func(c dialogChoice) *dialog {
		switch {
		case c.cancelled:
			s.endError = ErrDialogCancelled
		case isRefusalLabel(d.options[c.index].label):
			s.endError = ErrStartDeclined
		default:
			s.rewriteJSONFile(configPath, changeOnConsent)
		}
		return nil
	})
}

func (s *startupQuestions) isFolderTrusted() bool {
	for dir := s.plan.CWD; ; dir = filepath.Dir(dir) {
		trusted := string(s.globalConfig.At("projects", dir, "hasTrustDialogAccepted")) == "true"
		if trusted || dir == filepath.Dir(dir) {
			return trusted
		}
	}
}

func (s *startupQuestions) optionsWithLabelPrefixes(dialogKind string, labelPrefixes ...string) []dialogOption {
	options := make([]dialogOption, len(labelPrefixes))
	for i, begin := range labelPrefixes {
		options[i].label = s.console.screen.labels.findLabelOrPrefix("dialog/"+dialogKind, begin)
	}
	return options
}

func (s *startupQuestions) apiKeyDialogIfNeeded() *dialog {
	const shown = 20
	if s.apiKey == "" || !s.hasUserCompletedOnboarding() {
		return nil
	}
	tail := s.apiKey[max(0, len(s.apiKey)-shown):]
	known := plainjson.DecodeIgnoringErrors[struct{ Approved, Rejected []string }](s.globalConfig.Get("customApiKeyResponses")) // a missing list is empty
	if slices.Contains(known.Approved, tail) || slices.Contains(known.Rejected, tail) {
		return nil
	}
	d := &dialog{kind: "key", indent: 2, slotValues: map[string]string{"key": strings.Repeat("*", len(tail))}, head: []string{
		"  Detected a custom API key in your environment", "", "  ANTHROPIC_API_KEY: sk-ant-..." + strings.Repeat("*", len(tail)), "",
		"  Do you want to use this API key?", "",
	}}
	d.options = s.optionsWithLabelPrefixes("key", "Yes", "No (recommended)")
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		list := &known.Rejected
		if !c.cancelled && !isRefusalLabel(d.options[c.index].label) {
			list = &known.Approved
		}
		*list = append(*list, tail)
		raw := plainjson.MarshalString(map[string][]string{"approved": append([]string{}, known.Approved...), "rejected": append([]string{}, known.Rejected...)})
		s.rewriteJSONFile(s.plan.Store.File, func(o plainjson.Object) plainjson.Object {
			return o.Set("customApiKeyResponses", json.RawMessage(raw))
		})
		return nil
	})
	return d
}

func (s *startupQuestions) serversDialogIfNeeded() *dialog {
	settings := s.plan.Settings
	var names []string
	for _, server := range s.plan.Servers.Configs {
		if server.Source == "project" && !settings.IsApproved(server.Name) && !slices.Contains(settings.DisabledMCPJSONServers, server.Name) {
			names = append(names, server.Name)
		}
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return s.singleServerDialog(names[0])
	}
	d := &dialog{kind: "mcp", indent: 2, slotValues: map[string]string{"count": strconv.Itoa(len(names))}, head: []string{
		fmt.Sprintf("  %d new MCP servers found in this project", len(names)), "  Select any you wish to enable.", "",
	}}
	for _, name := range names {
		d.options = append(d.options, dialogOption{label: name, checkbox: checkboxChecked})
	}
	d.options = append(d.options, dialogOption{label: "Enable selected", isAction: true})
	d.foot = []string{" " + s.console.screen.labels.findLabelOrPrefix("dialog/mcp", "Space to select") + " · Esc to reject all"}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		var on, off []string
		for i, name := range names {
			if !c.cancelled && d.options[i].checkbox == checkboxChecked {
				on = append(on, name)
			} else {
				off = append(off, name)
			}
		}
		s.saveServerApprovals(on, off)
		return nil
	})
	return d
}

func (s *startupQuestions) singleServerDialog(name string) *dialog {
	d := &dialog{kind: "mcp", indent: 2, slotValues: map[string]string{"server": name}, head: []string{"  New MCP server found in this project: " + name, ""}}
	d.options = s.optionsWithLabelPrefixes("mcp", "Use this MCP server", "Use this and all", "Continue without")
	all := d.options[1].label
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		switch {
		case c.cancelled || isRefusalLabel(d.options[c.index].label):
			s.saveServerApprovals(nil, []string{name})
		case d.options[c.index].label == all:
			s.changeLocalSettings(func(o plainjson.Object) plainjson.Object {
				return addMissingNamesToArray(o, "enabledMcpjsonServers", []string{name}).Set("enableAllProjectMcpServers", json.RawMessage("true"))
			})
		default:
			s.saveServerApprovals([]string{name}, nil)
		}
		return nil
	})
	return d
}

func (s *startupQuestions) saveServerApprovals(enabled, disabled []string) {
	s.changeLocalSettings(func(o plainjson.Object) plainjson.Object {
		return addMissingNamesToArray(addMissingNamesToArray(o, "enabledMcpjsonServers", enabled), "disabledMcpjsonServers", disabled)
	})
}

func (s *startupQuestions) changeLocalSettings(change func(plainjson.Object) plainjson.Object) {
	s.rewriteJSONFile(s.plan.Settings.Options.FileToWrite("localSettings"), change)
}

func (s *startupQuestions) bypassModeDialogIfNeeded() *dialog {
	if s.plan.Permission.Mode != protocol.ModeBypass || !s.hasUserCompletedOnboarding() || string(s.globalConfig.Get("bypassPermissionsModeAccepted")) == "true" ||
		s.plan.Settings.Merged()["skipDangerousModePermissionPrompt"] == true {
		return nil
	}
	d := &dialog{kind: "bypass", indent: 2, head: []string{"  WARNING: Claude Code running in Bypass Permissions mode", ""}}
	d.options = s.optionsWithLabelPrefixes("bypass", "No, exit", "Yes, I accept")
	d.owner = s.newConsentDialogOwner(d, filepath.Join(s.plan.State, "settings.json"), func(o plainjson.Object) plainjson.Object {
		return o.Set("skipDangerousModePermissionPrompt", json.RawMessage("true"))
	})
	return d
}

func (s *startupQuestions) rewriteJSONFile(path string, change func(plainjson.Object) plainjson.Object) {
	s.hasWrittenFile = true
	object, err := plainjson.ReadFileOrEmpty(path)
	if s.endError = err; err != nil {
		return
	}
	if object = change(object); s.endError != nil {
		return
	}
	if s.endError = object.WriteFileAtomically(path, "\n", 0o600); path == s.plan.Store.File {
		s.globalConfig = object
	}
}

func addMissingNamesToArray(o plainjson.Object, key string, names []string) plainjson.Object {
	if len(names) == 0 {
		return o
	}
	known := plainjson.DecodeIgnoringErrors[[]string](o.Get(key)) // a missing list is empty
	for _, name := range names {
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return o.Set(key, json.RawMessage(plainjson.MarshalString(known)))
}
