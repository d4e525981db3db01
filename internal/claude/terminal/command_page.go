package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/claude/session"
	"github.com/claudeless/claudeless/internal/claudecode"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// runPageCommand runs /rename or a command that opens a page. It returns false if text is another command.
func (t *Terminal) runPageCommand(text string) bool {
	word, args, _ := strings.Cut(text, " ")
	s := &t.console.screen
	switch word {
	case "/model":
		s.dialog = t.modelDialogOrSwitchModel(text, strings.TrimSpace(args))
	case "/resume", "/continue":
		s.dialog = resumeSessionDialog(&t.plan, t.player.session.ID(), s.rows, func(id string) {
			if t.NextSessionID, t.quitRequested = id, id != ""; id == "" {
				t.showAndRecordDismissedCommand(text, "Resume cancelled")
			}
		})
		s.dialog.topRuleGlyph = t.newCommandPageDialog("", "").topRuleGlyph
	case "/rename":
		name := strings.TrimSpace(args)
		if name == "" {
			return false
		}
		t.player.session.Rename(name)
		t.showAndRecordCommand(session.SlashCommandRecord{
			Line: text, Output: "Session renamed to: " + name, Dismissed: true,
			TextForModel: protocol.InReminderTags(`The user named this session "` + name + `". This may indicate the session's focus or intent.`),
		})
	case "/help", "/status", "/cost", "/usage", "/config":
		s.dialog = t.infoDialog(word[1:])
	default:
		return false
	}
	return true
}

func (t *Terminal) newCommandPageDialog(kind, title string) *dialog {
	d := &dialog{state: StateCommandPage, kind: kind, indent: 2, topRuleGlyph: "▔", head: []string{"  " + title, ""}}
	if t.console.screen.isInline {
		d.topRuleGlyph = ruleGlyph
	}
	return d
}

func (t *Terminal) infoDialog(kind string) *dialog {
	titles := map[string]string{"help": "Help", "status": "Status", "cost": "Usage", "usage": "Usage", "config": "Config"}
	d := t.newCommandPageDialog(kind, titles[kind])
	session := t.player.session
	switch kind {
	case "help":
		d.head = append(d.head, t.console.screen.labels.shortcutHelpRows(t.console.screen.cols)...)
	case "status":
		d.head = append(d.head, "  Version:     "+t.plan.Version, "  Session ID:  "+session.ID(), "  cwd:         "+t.plan.CWD, "  Model:       "+session.Model())
	case "config":
		d.head = append(d.head, "  Model                    "+modelNameForHeader(session.Model()), "  Default permission mode  "+t.console.screen.mode)
	default:
		for row := range strings.SplitSeq(session.CostUntilLastTurnEnd().Text(), "\n") {
			d.head = append(d.head, "  "+row)
		}
	}
	d.foot = []string{"", "  Esc to close"}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		if c.key == keyEscape {
			return nil
		}
		return d
	})
	return d
}

// modelDialogOrSwitchModel returns the dialog after a /model command: the list of models or, with a name, the question whether to switch
// to it. It returns nil if nothing has to be asked.
func (t *Terminal) modelDialogOrSwitchModel(commandLine, name string) *dialog {
	if name != "" {
		return t.switchModelOrAsk(commandLine, name, true)
	}
	d := t.newCommandPageDialog("model", "Select model")
	pages := t.console.screen.labels.pages
	d.commandLine = commandLine
	d.showNumbers, d.acceptKey, d.foot = true, "s", []string{"", "  " + effortText(t.plan.Model.Effort), "", "  s to use this session only · Enter to save · Esc to cancel"}
	if about := pages.paragraphRestAfterPrefix("menu/model", "Select model\n"); about != "" {
		d.head = []string{d.head[0], "  " + about, ""}
	}
	names := []string{"default", "opus", "fable", "sonnet", "haiku"}
	for i, name := range names {
		label := map[bool]string{true: "Default (recommended)", false: strings.ToUpper(name[:1]) + name[1:]}[i == 0]
		model := t.resolveModelName(name)
		about := strings.TrimLeft(strings.TrimPrefix(pages.capturedOptionLabel("menu/model", label+" "), label), " ✔")
		if t.usesDefaultModel && i == 0 || !t.usesDefaultModel && i > 0 && model == t.player.session.Model() {
			label, d.selected = label+" ✔", i
		}
		if !strings.Contains(about, modelNameForHeader(model)) {
			about = modelNameForHeader(model)
		}
		d.options = append(d.options, dialogOption{label: fmt.Sprintf("%-24s ", label), rightText: about})
	}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		if c.cancelled {
			t.showAndRecordDismissedCommand(commandLine, "Kept model as `"+t.displayedModelName()+"`")
			return nil
		}
		return t.switchModelOrAsk(commandLine, names[c.index], c.text != d.acceptKey)
	})
	return d
}

// effortText returns the text about the session's effort below the list of models. An empty level means the default.
func effortText(level string) string {
	glyphs := map[string]string{"": "◐ Medium", "low": "○ Low", "medium": "◐ Medium", "high": "● High", "xhigh": "◉ xHigh"}
	return cmp.Or(glyphs[level], "◉ "+level) + " effort" + map[bool]string{true: " (default)"}[glyphs[level] == glyphs[""]] + " ←/→ to adjust"
}

func (t *Terminal) switchModelOrAsk(commandLine, name string, save bool) *dialog {
	model := t.resolveModelName(name)
	hasReplies := slices.ContainsFunc(t.console.screen.entries, func(e transcriptEntry) bool { return strings.HasPrefix(e.glyph, answerGlyph) })
	if !hasReplies || model == t.player.session.Model() {
		t.switchModel(commandLine, name, save)
		return nil
	}
	d := t.newCommandPageDialog("switch", "Switch model?")
	d.showNumbers, d.head = true, append(d.head, "  "+modelNameForHeader(model)+" has to read the whole conversation again.", "")
	d.options = []dialogOption{{label: "Yes, switch to " + modelNameForHeader(model)}, {label: "No, go back"}}
	d.foot = []string{"", "  " + t.console.screen.labels.findLabelOrPrefix("dialog", "Enter to confirm") + " · Esc to cancel"}
	d.owner = choiceHandlerFunc(func(c dialogChoice) *dialog {
		if c.cancelled || c.index > 0 {
			t.showAndRecordDismissedCommand(commandLine, "Kept model as `"+t.displayedModelName()+"`")
		} else {
			t.switchModel(commandLine, name, save)
		}
		return nil
	})
	return d
}

func (t *Terminal) resolveModelName(name string) string {
	return claudecode.ResolveModel(t.plan.Model.Aliases.ModelNameAfterOverrides(name))
}

func (t *Terminal) displayedModelName() string {
	name := modelNameForHeader(t.player.session.Model())
	if t.usesDefaultModel {
		name += " (default)"
	}
	return name
}

// switchModel changes the model of the session. If save is true, switchModel also writes the model to the user's settings.
func (t *Terminal) switchModel(commandLine, name string, save bool) {
	t.player.session.SetModel(name)
	t.usesDefaultModel = name == "default"
	t.showHeader()
	text := "Set model to `" + t.displayedModelName() + "`"
	if !save {
		text += " for this session only"
	} else if err := saveModelToSettingsFile(filepath.Join(t.plan.State, "settings.json"), name); err != nil {
		text += ", but the settings were not saved: " + err.Error()
	} else {
		text += " and saved as your default for new sessions"
	}
	t.showAndRecordCommand(session.SlashCommandRecord{Line: commandLine, Output: text})
}

// showHeader takes the header from a captured page, if possible one with the logo (it moves, so some pages lack it), and replaces the
// model.
func (t *Terminal) showHeader() {
	s, model := &t.console.screen, modelNameForHeader(t.player.session.Model())
	if s.header = s.labels.pages.headerRowsOfStartPage(map[string]string{"version": t.plan.Version, "dir": t.plan.CWD, "logo": ""}); s.header == nil {
		s.header = []string{"", " ▐▛███▛█   Claude Code v" + t.plan.Version, "▝▜██████▀  Model · API Usage Billing", " ▝▝   ▝▝   " + t.plan.CWD, ""}
		if s.isInline {
			s.header = s.header[1:]
		}
	}
	for i, row := range s.header {
		if m := regexp.MustCompile(`^([^A-Za-z]*)\S.*?( · .*)`).FindStringSubmatch(row); m != nil {
			s.header[i] = m[1] + model + m[2]
			break
		}
	}
	s.header = append(s.header, t.console.noticeRows...)
}

// saveModelToSettingsFile writes the model to a settings file. For the default model, it removes the key "model".
func saveModelToSettingsFile(path, name string) error {
	settings, err := plainjson.ReadFileOrEmpty(path)
	if err != nil {
		return err
	}
	if settings = settings.Set("model", json.RawMessage(plainjson.MarshalString(name))); name == "default" {
		settings = settings.Delete("model")
	}
	return settings.WriteFileAtomically(path, "\n", 0o600)
}

func (t *Terminal) showAndRecordDismissedCommand(line, result string) {
	t.showAndRecordCommand(session.SlashCommandRecord{Line: line, Output: result, Dismissed: true})
}

// showContextUsage runs /context, whose chart depends on the width of the screen.
func (t *Terminal) showContextUsage(commandLine string) {
	s, usage := &t.console.screen, t.player.session.ContextUsage()
	s.queued = withoutPasteTags(t.player.prompts.waitingTexts())
	chart, lists := usage.Chart(modelNameForHeader(usage.Model), s.cols), usage.ItemCounts()
	if _, args, _ := strings.Cut(commandLine, " "); s.isInline || strings.EqualFold(strings.TrimSpace(args), "all") {
		lists = usage.ItemLists(t.plan.CWD)
	}
	t.showAndRecordCommand(session.SlashCommandRecord{Line: commandLine, Output: chart + lists, Dismissed: true, IsDisplayOnly: true, TextForModel: usage.UsageMarkdownOfLargestItems()})
}

func (t *Terminal) showAndRecordCommand(c session.SlashCommandRecord) {
	s := &t.console.screen
	shown := removeMarkdownFromLine(c.Output)
	if c.IsDisplayOnly {
		shown = regexp.MustCompile(`^ |\x1b\[[0-9;]*m`).ReplaceAllString(c.Output, "")
	}
	s.entries = append(s.entries, transcriptEntry{glyph: promptGlyph + " ", text: c.Line}, noteEntry(shown))
	session.RecordSlashCommand(t.player.session, c)
	t.player.prompts.pushSentWhileIdle()
}

func (t *Terminal) showAndRecordNotice(text, level string) {
	s := &t.console.screen
	s.entries = append(s.entries, transcriptEntry{glyph: answerGlyph + " ", text: text, isError: true})
	session.RecordAtNextTurnBoundary(t.player.session, informationalSystemEvent(text, level))
}

type autoModeExplanationDue struct{}

func (t *Terminal) explainAutoModeSoon() {
	if t.console.screen.mode == string(protocol.ModeAuto) && !t.autoModeExplained {
		t.autoModeExplained = true
		time.AfterFunc(claudecode.DelayFromAutoModeToItsExplanation, func() { t.player.screenMailbox.addMessage(autoModeExplanationDue{}) })
	}
}

// explainAutoModeOncePerUser shows once for each user what auto mode does.
func (t *Terminal) explainAutoModeOncePerUser() {
	const key, subject = "hasSeenAutoModeEntryWarning", "Auto mode lets Claude"
	s, file := &t.console.screen, t.plan.Store.File
	config, err := plainjson.ReadFileOrEmpty(file)
	if err != nil || string(config.Get(key)) == "true" || s.mode != string(protocol.ModeAuto) {
		return
	}
	rest := cmp.Or(s.labels.pages.paragraphRestAfterPrefix("idle/done", answerGlyph+" "+subject), "decide about permissions instead of asking you. Shift+Tab to change mode.")
	t.showAndRecordNotice(subject+" "+rest, "notice")
	t.player.prompts.pushSentWhileIdle()
	_ = config.Set(key, json.RawMessage("true")).WriteFileAtomically(file, "\n", 0o600) // on failure, it is explained again next time
}
