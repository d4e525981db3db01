package capture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/exec/gate"
	"github.com/claudeless/claudeless/internal/screens/book"
	"github.com/claudeless/claudeless/internal/screens/emulator"
	"github.com/claudeless/claudeless/internal/screens/tape"
)

type tapeRun struct {
	*Options
	tapeWithTargetBook
	temp *proc.TempDir
	cast castWriter
}

func newTapeRun(o *Options, j tapeWithTargetBook) (*tapeRun, error) {
	temp, err := proc.MakeTempDir("claudeless-screens-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the tape: %w", err)
	}
	s := &tapeRun{Options: o, tapeWithTargetBook: j, temp: temp, cast: castWriter{cols: j.book.Cols, rows: j.book.Rows}}
	if err := s.writeInputFiles(); err != nil {
		s.removeTempDir()
		return nil, fmt.Errorf("tape %s: %w", j.tape.Name, err)
	}
	return s, nil
}

func (s *tapeRun) removeTempDir() { _ = s.temp.Remove() } // a remaining directory in /tmp is harmless

func (s *tapeRun) path(parts ...string) string {
	return filepath.Join(append([]string{s.temp.Path}, parts...)...)
}

// projectDirOfFixedLength returns a path that has the same length in every run, so that lines break at the same places.
func (s *tapeRun) projectDirOfFixedLength() string {
	const length = len("/claudeless-screens-4294967295/project")
	return s.path("project" + strings.Repeat("t", max(0, length-len(filepath.Base(s.temp.Path))-len("//project"))))
}

func (s *tapeRun) writeInputFiles() error {
	files := map[string]string{s.path("settings.json"): s.settingsJSON()}
	if strings.Contains(s.tape.Scenario, "\n") {
		files[s.scenarioFile()] = s.tape.Scenario
	}
	if s.tape.MCP != "" {
		files[filepath.Join(s.projectDirOfFixedLength(), ".mcp.json")] = strings.ReplaceAll(s.tape.MCP, "$BIN", s.Self)
	}
	for name, text := range s.tape.Files {
		files[filepath.Join(s.projectDirOfFixedLength(), filepath.FromSlash(name))] = text
	}
	err := errors.Join(os.MkdirAll(s.projectDirOfFixedLength(), 0o755), os.MkdirAll(s.path("home"), 0o755))
	for name, text := range files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	return err
}

func (s *tapeRun) scenarioFile() string {
	if strings.Contains(s.tape.Scenario, "\n") {
		return s.path("scenario.toml")
	}
	return s.tape.Scenario
}

func (s *tapeRun) settingsJSON() string {
	all := map[string]any{"tui": map[bool]string{true: "default", false: "fullscreen"}[s.book.Renderer == book.RendererInline]}
	if !slices.Contains(s.tape.Dialogs, "mcp") && !slices.Contains(s.tape.Dialogs, "all") {
		all["enableAllProjectMcpServers"] = true
	}
	_ = json.Unmarshal([]byte(strings.ReplaceAll(s.tape.Settings, "$BIN", s.Self)), &all) // ignores invalid settings
	raw, _ := json.Marshal(all)                                                           // cannot fail: all came from JSON
	return string(raw)
}

func (s *tapeRun) command() proc.Command {
	const start = `eval "$1"; cat "$0" >"$CLAUDE_CONFIG_DIR/settings.json"; shift; exec env "$@"`
	args := []string{"exec", "--guard=strict", "--tty", "--size=" + emulator.Size{Cols: s.book.Cols, Rows: s.book.Rows}.String(), "--capture", s.path("journal.jsonl"), "--allow-no-runs", "--lenient"}
	if s.Claude != "" {
		args = append(args, "--real="+s.Claude)
	}
	if s.book.Renderer == book.RendererInline {
		args = append(args, "--renderer=inline")
	}
	if len(s.tape.Dialogs) > 0 {
		args = append(args, "--fresh="+strings.Join(s.tape.Dialogs, ","))
	}
	setup := cmp.Or(s.tape.Setup, ":")
	args = append(args, "-s", s.scenarioFile(), "--", "sh", "-c", start, s.path("settings.json"), setup)
	var set []string
	for _, kv := range s.tape.Env {
		if name, ok := strings.CutPrefix(kv, "-"); ok {
			args = append(args, "-u", name)
		} else {
			set = append(set, kv)
		}
	}
	if s.book.Tmux {
		set = append(set, "TMUX="+s.path("tmux")+",1,0", "TMUX_PANE=%0", "TERM=tmux-256color")
	}
	args = append(append(append(args, set...), "claude"), s.tape.Args...)
	return proc.Command{
		Path: s.Self, Args: args, Dir: s.projectDirOfFixedLength(),
		Env: []string{
			"PATH=" + proc.Getenv(s.Environ, "PATH"), "HOME=" + s.path("home"), "TERM=xterm-256color", "LANG=C.UTF-8",
			"CLAUDELESS_GATES=" + s.path("gates"), "CLAUDELESS_SCREENS=" + proc.Getenv(s.Environ, "CLAUDELESS_SCREENS"), "TMPDIR=" + os.TempDir(), "SHELL=/bin/sh",
		},
	}
}

func (s *tapeRun) playReplacingCapturedFiles(ctx context.Context, r *Result) error {
	if err := s.book.RemoveCapturedFilesOfTape(s.tape.Name); err != nil {
		return err
	}
	verdict, err := os.Create(s.path("verdict"))
	if err != nil {
		return err
	}
	defer verdict.Close()
	program, err := emulator.StartProgram(ctx, emulator.ProgramOptions{Command: s.command(), Size: emulator.Size{Cols: s.book.Cols, Rows: s.book.Rows}, Stderr: verdict})
	if err != nil {
		return err
	}
	const grace = 3 * time.Second
	player := tape.Player{
		Program: program, Screen: emulator.New(s.book.Cols, s.book.Rows), Clock: s.Clock, Recorder: &s.cast,
		Page:     func(p tape.CapturedScreen) error { return s.savePage(p, r) },
		OpenGate: func(name string) error { return gate.Release(s.path("gates"), name) },
	}
	err = player.Play(ctx, s.tape)
	program.Stop(grace)
	cast, raw := s.cast.contents()
	return errors.Join(err, s.book.WriteRecordedTapeOutput(s.tape.Name, cast, raw))
}

// savePage stores a captured screen. If its state label is wrong, its files get the suffix [book.RejectedSuffix].
func (s *tapeRun) savePage(page tape.CapturedScreen, r *Result) error {
	p := book.Page{Tape: s.tape.Name, Name: page.Name, State: page.State, Enter: page.Enter, BookID: s.book.BookID, Offset: page.Offset}
	texts := map[string]string{"dir": s.projectDirOfFixedLength()}
	maps.Copy(texts, s.tape.Slots)
	p.SetContentAndSlotsFromScreen(page.Screen, texts)
	if effect := effectOfEnterOnSelectedOption(p.Options); effect != "" && p.Enter != "" {
		p.Enter = effect // some versions select another option than the script of keys expects
	}
	s.cast.addMarker(p.TapeDotName() + " " + p.State)
	r.Pages++
	if wrong := book.ImplausibleStateReason(&p); wrong != "" {
		r.Wrong = append(r.Wrong, fmt.Sprintf("%s is labelled %s: %s", p.TapeDotName(), p.State, wrong))
		return s.book.WriteAs(&p, p.TapeDotName(), book.RejectedSuffix)
	}
	return s.book.Write(&p)
}

// effectOfEnterOnSelectedOption returns the effect of Enter, by the label of the selected option; empty means unknown.
func effectOfEnterOnSelectedOption(options []book.DialogOption) (quitsRefusesAcceptsOrEmpty string) {
	for _, o := range options {
		switch {
		case !o.Selected:
		case strings.HasPrefix(o.Label, "No, exit"):
			return "quits"
		case strings.HasPrefix(o.Label, "No") || strings.HasPrefix(o.Label, "Continue without"):
			return "refuses"
		case strings.HasPrefix(o.Label, "Yes") || strings.HasPrefix(o.Label, "Use this"):
			return "accepts"
		}
	}
	return ""
}

func (s *tapeRun) failureScreenAndJournal(failedStep *tape.StepError) string {
	var b strings.Builder
	if failedStep != nil {
		b.WriteString("the screen was:\n" + failedStep.Screen.TextForMessages())
	}
	if lines := strings.Split(strings.TrimRight(fileTextOrEmpty(s.path("journal.jsonl")), "\n"), "\n"); len(lines) > 0 && lines[0] != "" {
		b.WriteString("the last lines of the journal:\n")
		for _, line := range lines[max(0, len(lines)-maxJournalLinesInFailureDetails):] {
			const most = 300
			if len(line) > most {
				line = line[:most] + "…"
			}
			b.WriteString("  " + line + "\n")
		}
	}
	if said := strings.TrimSpace(fileTextOrEmpty(s.path("verdict"))); said != "" {
		b.WriteString("exec wrote:\n  " + strings.ReplaceAll(said, "\n", "\n  ") + "\n")
	}
	return b.String()
}
