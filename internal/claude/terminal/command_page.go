package terminal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
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
		s.dialog = t.modelDialog(text, strings.TrimSpace(args))
	case "/resume", "/continue":
		s.dialog = sessionDialog(&t.plan, t.player.session.ID(), s.rows, func(id string) {
			if t.Next, t.quit = id, id != ""; id == "" {
				t.reportCommand(text, "Resume cancelled")
			}
		})
		s.dialog.topRule = t.newCommandPageDialog("", "").topRule
	case "/rename":
		name := strings.TrimSpace(args)
		if name == "" {
			return false
		}
		t.player.session.Rename(name)
		t.reportCommand(text, "Session renamed to: "+name)
		reminder := protocol.Content{Text: protocol.Reminder(`The user named this session "` + name + `". This may indicate the session's focus or intent.`)}
		session.RecordInTranscriptBetweenTurns(t.player.session, &protocol.PromptAccepted{UUID: t.plan.Clock.NewID(), PromptID: t.plan.Clock.NewID(), Injected: true, Content: reminder})
	case "/help", "/status", "/cost", "/usage", "/config":
		s.dialog = t.infoDialog(word[1:])
	default:
		return false
	}
	return true
}

func (t *Terminal) newCommandPageDialog(kind, title string) *dialog {
	d := &dialog{state: StateCommandPage, kind: kind, indent: 2, topRule: "▔", head: []string{"  " + title, ""}}
	if t.console.screen.inline {
		d.topRule = ruleGlyph
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
		d.head = append(d.head, "  Model                    "+displayModelName(session.Model()), "  Default permission mode  "+t.console.screen.mode)
	default:
		for row := range strings.SplitSeq(session.Cost().Text(), "\n") {
			d.head = append(d.head, "  "+row)
		}
	}
	d.foot = []string{"", "  Esc to close"}
	d.owner = chooserFunc(func(c dialogChoice) *dialog {
		if c.key == keyEscape {
			return nil
		}
		return d
	})
	return d
}

// modelDialog returns the dialog after a /model command: the list of models or, with a name, the question whether to switch
// to it. It returns nil if nothing has to be asked.
func (t *Terminal) modelDialog(line, name string) *dialog {
	if name != "" {
		return t.switchModelOrAsk(line, name, true)
	}
	d := t.newCommandPageDialog("model", "Select model")
	pages := t.console.screen.labels.pages
	d.showNumbers, d.letter, d.foot = true, "s", []string{"", "  " + effortText(t.plan.Model.Effort), "", "  s to use this session only · Enter to save · Esc to cancel"}
	if about := pages.paragraphAfter("menu/model", "Select model\n"); about != "" {
		d.head = []string{d.head[0], "  " + about, ""}
	}
	names := []string{"default", "opus", "fable", "sonnet", "haiku"}
	for i, name := range names {
		label := map[bool]string{true: "Default (recommended)", false: strings.ToUpper(name[:1]) + name[1:]}[i == 0]
		model := t.resolveModel(name)
		about := strings.TrimLeft(strings.TrimPrefix(pages.optionLabel("menu/model", label+" "), label), " ✔")
		if t.defaultModel && i == 0 || !t.defaultModel && i > 0 && model == t.player.session.Model() {
			label, d.selected = label+" ✔", i
		}
		if !strings.Contains(about, displayModelName(model)) {
			about = displayModelName(model)
		}
		d.options = append(d.options, option{label: fmt.Sprintf("%-24s ", label), aside: about})
	}
	d.owner = chooserFunc(func(c dialogChoice) *dialog {
		if c.cancelled {
			t.reportCommand(line, "Kept model as `"+t.shownModel()+"`")
			return nil
		}
		return t.switchModelOrAsk(line, names[c.index], c.text != d.letter)
	})
	return d
}

// effortText describes the effort of the session in the list of models. An empty level is the default.
func effortText(level string) string {
	glyphs := map[string]string{"": "◐ Medium", "low": "○ Low", "medium": "◐ Medium", "high": "● High", "xhigh": "◉ xHigh"}
	return cmp.Or(glyphs[level], "◉ "+level) + " effort" + map[bool]string{true: " (default)"}[glyphs[level] == glyphs[""]] + " ←/→ to adjust"
}

func (t *Terminal) switchModelOrAsk(line, name string, save bool) *dialog {
	model := t.resolveModel(name)
	hasReplies := slices.ContainsFunc(t.console.screen.entries, func(e entry) bool { return strings.HasPrefix(e.glyph, answerGlyph) })
	if !hasReplies || model == t.player.session.Model() {
		t.switchModel(line, name, save)
		return nil
	}
	d := t.newCommandPageDialog("switch", "Switch model?")
	d.showNumbers, d.head = true, append(d.head, "  "+displayModelName(model)+" has to read the whole conversation again.", "")
	d.options = []option{{label: "Yes, switch to " + displayModelName(model)}, {label: "No, go back"}}
	d.foot = []string{"", "  " + t.console.screen.labels.findLabelOrPrefix("dialog", "Enter to confirm") + " · Esc to cancel"}
	d.owner = chooserFunc(func(c dialogChoice) *dialog {
		if c.cancelled || c.index > 0 {
			t.reportCommand(line, "Kept model as `"+t.shownModel()+"`")
		} else {
			t.switchModel(line, name, save)
		}
		return nil
	})
	return d
}

func (t *Terminal) resolveModel(name string) string {
	return claudecode.ResolveModel(t.plan.Model.Aliases.ResolveModelName(name))
}

func (t *Terminal) shownModel() string {
	name := displayModelName(t.player.session.Model())
	if t.defaultModel {
		name += " (default)"
	}
	return name
}

// switchModel changes the model of the session. If save is true, switchModel also writes the model to the user's settings.
func (t *Terminal) switchModel(line, name string, save bool) {
	s := &t.console.screen
	before := displayModelName(t.player.session.Model())
	t.player.session.SetModel(name)
	t.defaultModel = name == "default"
	for i, row := range s.header {
		s.header[i] = strings.Replace(row, before+" · ", displayModelName(t.player.session.Model())+" · ", 1)
	}
	text := "Set model to `" + t.shownModel() + "`"
	if !save {
		text += " for this session only"
	} else if err := saveModel(filepath.Join(t.plan.State, "settings.json"), name); err != nil {
		text += ", but the settings were not saved: " + err.Error()
	} else {
		text += " and saved as your default for new sessions"
	}
	t.recordCommand(session.CommandRecord{Line: line, Output: text})
}

// saveModel writes the model to a settings file. For the default model, it removes the key "model".
func saveModel(path, name string) error {
	settings, err := plainjson.ReadFileOrEmpty(path)
	if err != nil {
		return err
	}
	if settings = settings.With("model", json.RawMessage(plainjson.MarshalString(name))); name == "default" {
		settings = settings.Without("model")
	}
	return settings.WriteFile(path, "\n", 0o600)
}

func (t *Terminal) reportCommand(line, result string) {
	t.recordCommand(session.CommandRecord{Line: line, Output: result, Dismissed: true})
}

func (t *Terminal) recordCommand(c session.CommandRecord) {
	s := &t.console.screen
	s.entries = append(s.entries, entry{glyph: promptGlyph + " ", text: c.Line}, noteEntry(removeMarkdownFromLine(c.Output)))
	session.RecordTerminalCommandInTranscript(t.player.session, c)
	t.player.prompts.pushWhenIdle()
}

func (t *Terminal) showAndRecord(text, level string) {
	s := &t.console.screen
	s.entries = append(s.entries, entry{glyph: answerGlyph + " ", text: text, isError: true})
	session.RecordInTranscriptBetweenTurns(t.player.session, informationalEvent(text, level))
}

type autoModeExplanationDue struct{}

func (t *Terminal) explainAutoModeSoon() {
	if t.console.screen.mode == string(protocol.ModeAuto) && !t.autoExplained {
		t.autoExplained = true
		time.AfterFunc(claudecode.DelayFromAutoModeToItsExplanation, func() { t.player.inbox.put(autoModeExplanationDue{}) })
	}
}

// explainAutoMode shows once for each user what auto mode does.
func (t *Terminal) explainAutoMode() {
	const key, subject = "hasSeenAutoModeEntryWarning", "Auto mode lets Claude"
	s, file := &t.console.screen, t.plan.Store.File
	config, err := plainjson.ReadFileOrEmpty(file)
	if err != nil || string(config.Get(key)) == "true" || s.mode != string(protocol.ModeAuto) {
		return
	}
	rest := cmp.Or(s.labels.pages.paragraphAfter("idle/done", answerGlyph+" "+subject), "decide about permissions instead of asking you. Shift+Tab to change mode.")
	t.showAndRecord(subject+" "+rest, "notice")
	t.player.prompts.pushWhenIdle()
	_ = config.With(key, json.RawMessage("true")).WriteFile(file, "\n", 0o600) // on failure, it is explained again next time
}
