package session

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
	"github.com/claudeless/claudeless/simulator/protocol"
)

var update = flag.Bool("update", false, "rewrite the expected lines of the conversations")

// TestConversations plays testdata/*.txtar. Each file checks one behaviour of a session, which its comment describes.
//
// The file "flags" contains the command line of claude, and "environ" lines to add to its environment. The file "conversation" is
// played line by line; other files are written to the working directory first. In all of them, $WORK is the working directory,
// and $CONFIG is the configuration directory of claude.
//
//	> TEXT          a prompt, with the background work that follows
//	turn TEXT       a prompt alone
//	! COMMAND       a command that the user runs in the session's shell
//	rename, model, servers, agents VALUE
//	                a change by a host
//	again FLAGS     the process ends, and another one begins with more flags
//	usage, cost, statuses, background, plan, deferred
//	                a query
//	show GLOB       prints files of the working directory
//	transcript      prints the transcript so far
//	work            plays the background work and the turns that it needs
//	< LINE          what the session answers; with -update, these lines are rewritten
//
// A line longer than 700 bytes is cut, and that of the init event after 160 bytes. Keys that have the same values in all lines, and ids,
// are left out. If the file "flags" has a second line "whole", lines are printed as they are.
func TestConversations(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c := &conversationTest{t: t}
			at := c.prepare(archive)
			script := string(archive.Files[at].Data)
			c.play(script)
			if *update {
				archive.Files[at].Data = []byte(c.out.String())
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(script, c.out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type conversationTest struct {
	t                  *testing.T
	work, config, temp string
	wholeInit          bool
	flags              string
	environ            []string
	ids                int // issued so far
	out                strings.Builder
	session            *Session
	server             string // program that serves MCP
}

// prepare writes the files of an archive and returns the index of its conversation.
func (c *conversationTest) prepare(archive *txtar.Archive) (at int) {
	c.t.Helper()
	var err error
	c.work, c.temp = newDirOfFixedLength(c.t), newDirOfFixedLength(c.t)
	c.config = filepath.Join(c.work, ".config")
	c.server, err = os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	replace := strings.NewReplacer("$WORK", c.work, "$CONFIG", c.config, "$SERVER", c.server)
	for i, f := range archive.Files {
		text := replace.Replace(string(f.Data))
		switch f.Name {
		case "flags":
			line, rest, _ := strings.Cut(text, "\n")
			c.flags, c.wholeInit = line, rest == "whole\n"
		case "environ":
			c.environ = strings.Fields(text)
		case "conversation":
			at = i
		default:
			path := filepath.Join(c.work, f.Name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				c.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	return at
}

// newDirOfFixedLength returns a new directory. Its path has always the same length, because tokens of paths in prompts are counted.
func newDirOfFixedLength(t *testing.T) string {
	t.Helper()
	const length = 100
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, strings.Repeat("d", max(1, length-len(dir))))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c *conversationTest) plan(more string) launch.Plan {
	c.t.Helper()
	sys := &process.System{
		Args:    append([]string{"claude"}, strings.Fields(c.flags+" "+more)...),
		Environ: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.work, "CLAUDE_CONFIG_DIR=" + c.config, "TMPDIR=" + c.temp}, c.environ...),
		Stdin:   strings.NewReader(""), Stdout: c.t.Output(), Stderr: c.t.Output(), UID: 1000,
		Getwd:      func() (string, error) { return c.work, nil },
		Executable: func() (string, error) { return "/usr/bin/claude", nil },
		Now:        func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() string {
			c.ids++
			return fmt.Sprintf("%08x-0000-4000-8000-0000%08[1]x", uint32(c.ids*2_654_435_761))
		}, // ids of tasks have only a part of it
	}
	f, err := flags.Parse(sys, sys.Args[1:])
	if err == nil {
		err = f.CheckAndNormalize(sys)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	plan, err := launch.Resolve(sys, f)
	if err != nil {
		c.t.Fatal(err)
	}
	return plan
}

// open starts a process of the session.
func (c *conversationTest) open(ctx context.Context, more string) {
	c.t.Helper()
	var err error
	if c.session, err = Open(c.plan(more), nil); err != nil {
		c.t.Fatal(err)
	}
	if err := c.session.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// close ends it.
func (c *conversationTest) close(ctx context.Context) {
	c.t.Helper()
	c.printEvents(c.session.TakeRemainingFrames())
	if missed := c.session.JudgeScenarioAndStopTelemetry(0); missed != nil {
		c.printJSON(missed)
	}
	c.session.Close(ctx)
}

func (c *conversationTest) play(script string) {
	c.t.Helper()
	ctx := c.t.Context()
	c.open(ctx, "")
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, "< ") {
			continue
		}
		c.out.WriteString(line)
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		c.step(ctx, word, rest)
	}
	c.close(context.WithoutCancel(ctx))
}

func (c *conversationTest) step(ctx context.Context, word, rest string) {
	c.t.Helper()
	s := c.session
	message := protocol.UserMessage{Content: protocol.Content{Text: rest}}
	switch word {
	case ">":
		c.printEvents(s.PlayTurnsAndBackgroundWork(ctx, []protocol.UserMessage{message}))
	case "work":
		c.printEvents(s.PlayTurnsAndBackgroundWork(ctx, nil))
	case "turn":
		message.UUID = "11111111-0000-4000-8000-000000000000"
		c.printEvents(s.Turn(ctx, message))
	case "!":
		stdout, stderr := RunShell(ctx, s, rest)
		c.printJSON([]string{stdout, stderr})
	case "rename":
		s.Rename(rest)
	case "model":
		s.SetModel(rest)
	case "servers":
		change, err := s.ReplaceHostServers(ctx, json.RawMessage(strings.ReplaceAll(rest, "$SERVER", c.server)))
		c.printJSON([]any{change, fmt.Sprint(err)})
	case "agents":
		c.printJSON(fmt.Sprint(DefineAgentsBeforeFirstTurn(s, json.RawMessage(rest))))
	case "usage":
		c.printJSON(s.ContextUsage())
	case "cost":
		c.printJSON(s.CostUntilLastTurnEnd())
	case "statuses":
		c.printJSON(s.ServerStatuses())
	case "background":
		busy, another := s.BackgroundState()
		prompt, hasPrompt := s.TakePromptAboutBackgroundWork()
		c.printJSON([]any{busy, another, prompt.Content.Plain(), hasPrompt})
	case "plan":
		path, plan := s.PlanModeFile()
		c.printJSON([]any{path, plan, ShownPlanPath(s)})
	case "deferred":
		prompt, ok := s.PromptToRunDeferredCall()
		c.printJSON([]any{prompt.Content.Plain(), ok})
	case "show":
		c.show(rest)
	case "again":
		c.close(context.WithoutCancel(ctx))
		c.open(ctx, rest)
	case "transcript":
		c.showTranscript()
	case "", "#":
	default:
		c.t.Fatalf("unknown line %q", word+" "+rest)
	}
}

func (c *conversationTest) printEvents(events Events) {
	for ev, err := range events {
		switch {
		case err != nil:
			c.print("error " + err.Error())
		case protocol.HasWireForm(ev):
			c.printJSON(ev)
		}
	}
}

func (c *conversationTest) printJSON(v any) {
	c.t.Helper()
	line, err := protocol.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	if !c.wholeInit {
		line = withoutUninterestingKeys(line)
	}
	c.print(string(line))
}

// osVersion is the name and version of the operating system in the texts about the environment.
var osVersion = regexp.MustCompile(`(System: |"osVersion":")[^"\\]*`)

func (c *conversationTest) print(line string) {
	line = osVersion.ReplaceAllString(line, "${1}SYSTEM")
	line = strings.NewReplacer(
		c.server, "$SERVER", c.config, "$CONFIG", c.work, "$WORK", c.temp, "$TMP", strings.NewReplacer("/", "-", ".", "-").Replace(c.work), "$WORK", fmt.Sprint(`"PID":`, os.Getpid()), `"PID":1`,
	).Replace(line)
	most := 700
	if !c.wholeInit && strings.Contains(line, `"subtype":"init"`) {
		most = 160
	} else if c.wholeInit {
		most = len(line)
	}
	if len(line) > most {
		line = line[:most] + "…"
	}
	c.out.WriteString("< " + strings.ReplaceAll(line, "\n", "\n< ") + "\n")
}

func (c *conversationTest) show(glob string) {
	c.t.Helper()
	found := false
	err := fs.WalkDir(os.DirFS(c.work), ".", func(path string, d fs.DirEntry, err error) error {
		if match, _ := filepath.Match(glob, path); err != nil || !match || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(c.work, path))
		found = true
		c.print(strings.TrimSuffix(string(data), "\n"))
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if !found {
		c.print("no file")
	}
}

// showTranscript prints the lines of the transcript, except those about requests.
func (c *conversationTest) showTranscript() {
	c.t.Helper()
	WriteDelayedTranscriptChanges(c.session)
	data, err := os.ReadFile(c.session.Transcript().Path())
	if err != nil {
		c.print("no transcript")
		return
	}
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, `"hash":`) && !strings.Contains(line, `"requestDigest":`) {
			c.printJSON(json.RawMessage(line))
		}
	}
}

// uninterestingKeys are keys of events and of lines in the transcript that have the same values in all of them, or ids.
var uninterestingKeys = []string{ // constant: only read
	"cwd", "sessionId", "session_id", "version", "gitBranch", "isSidechain", "userType", "entrypoint", "timestamp", "uuid", "parentUuid", "request_id", "requestId", "slug",
}

// withoutUninterestingKeys removes keys of an object and the id of its message. Other values are returned unchanged.
func withoutUninterestingKeys(line []byte) []byte {
	in, err := plainjson.Parse(line)
	if err != nil {
		return line
	}
	in = in.Delete(uninterestingKeys...)
	if message, err := plainjson.Parse(in.Get("message")); err == nil && message.Get("usage") != nil {
		in = in.Set("message", message.Delete("id", "type", "role", "context_management").Raw())
	}
	return in.Raw()
}
