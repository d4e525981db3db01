package host

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/claude/flags"
	"github.com/claudeless/claudeless/internal/claude/launch"
)

// TestSessions plays testdata/session/*.txtar. In contrast to [TestConversations], the session is real. The files "flags" and "environ" contain
// the command line and additional variables of claude. "conversation" has the lines of [TestConversations], and
//
//	request BODY   a control request with this body
//	answer BODY    an answer to the last request of claude
//	show PATH      prints a file
//
// Other files are written to the working directory, $WORK, first. Keys of frames that are the same in all of them, and ids, are left
// out; lines of more than 900 bytes are cut, if "flags" has no second line "whole".
func TestSessions(t *testing.T) {
	names, err := filepath.Glob("testdata/session/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			work, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			// tokens of paths in prompts are counted
			work = filepath.Join(work, strings.Repeat("d", max(1, 100-len(work))))
			var line, script string
			var environ []string
			at := -1
			for i, f := range archive.Files {
				text := strings.ReplaceAll(string(f.Data), "$WORK", work)
				switch f.Name {
				case "flags":
					line = text
				case "environ":
					environ = strings.Fields(text)
				case "conversation":
					script, at = string(f.Data), i
				default:
					path := filepath.Join(work, f.Name)
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			line, rest, _ := strings.Cut(line, "\n")
			var got string
			synctest.Test(t, func(t *testing.T) {
				h := hosting{t: t, work: work, whole: rest == "whole\n"}
				got = h.play(line, environ, script)
			})
			if *update {
				archive.Files[at].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(script, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// hosting is a host that plays a conversation with a session.
type hosting struct {
	t            *testing.T
	work         string
	whole        bool
	conversation *conversation
	requests     int    // sent so far
	asked        string // id of the last request of claude
	out          strings.Builder
}

func (h *hosting) play(line string, environ []string, script string) string {
	h.t.Helper()
	h.open(line, environ)
	c := h.conversation
	for line := range strings.Lines(script) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if word == "<" || word == "=" {
			continue
		}
		h.out.WriteString(line)
		rest = strings.ReplaceAll(rest, "$WORK", h.work)
		switch word {
		case ">":
			c.send(rest)
		case "request":
			h.requests++
			c.send(fmt.Sprintf(`{"type":"control_request","request_id":"r%d","request":%s}`, h.requests, rest))
		case "answer":
			c.send(fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, h.asked, rest))
		case "wait":
			d, err := time.ParseDuration(rest)
			if err != nil {
				h.t.Fatal(err)
			}
			<-time.After(d)
		case "eof":
			c.in.Close()
		case "show":
			data, err := os.ReadFile(rest)
			if err != nil {
				data = []byte("no file")
			}
			h.print(string(data))
		case "", "#":
		default:
			h.t.Fatalf("unknown line %q", line)
		}
		synctest.Wait()
		h.print(withCancellationsLast(c.newOutput()))
	}
	c.in.Close()
	synctest.Wait()
	h.print(c.newOutput())
	c.cancel()
	synctest.Wait()
	return h.out.String()
}

func (h *hosting) open(line string, environ []string) {
	h.t.Helper()
	ids := 0
	r, w := io.Pipe()
	c := &conversation{in: w, out: &stdout{turn: make(chan struct{}, 1)}, done: make(chan error, 1)}
	c.out.turn <- struct{}{}
	c.out.whole = true
	h.conversation = c
	sys := &process.System{
		Args:    append([]string{"claude"}, strings.Fields("-p --input-format stream-json --output-format stream-json --verbose "+line)...),
		Environ: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.work, "CLAUDE_CONFIG_DIR=" + filepath.Join(h.work, ".config"), "TMPDIR=" + h.work, "CLAUDELESS_SCENARIO=" + filepath.Join(h.work, "s.toml")}, environ...),
		Stdin:   r, Stdout: c.out, Stderr: h.t.Output(), UID: 1000,
		Getwd:      func() (string, error) { return h.work, nil },
		Executable: func() (string, error) { return "/usr/bin/claude", nil },
		Now:        time.Now,
		NewID: func() string {
			ids++
			return fmt.Sprintf("%08x-0000-4000-8000-0000%08[1]x", uint32(ids*2_654_435_761)) // ids of tasks have only a part of it
		},
	}
	f, err := flags.Parse(sys, sys.Args[1:])
	if err == nil {
		err = f.CheckAndNormalize(sys)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	plan, err := launch.Resolve(sys, f)
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := Open(plan, sys, &process.SignalHandler{})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	c.cancel = cancel
	go func() {
		err := server.Serve(ctx)
		server.Session().Close(context.WithoutCancel(ctx))
		c.done <- err
	}()
	synctest.Wait()
}

// withCancellationsLast moves the lines that cancel requests behind the others, because the scheduler decides where they are.
func withCancellationsLast(output string) string {
	var others, cancellations strings.Builder
	for line := range strings.Lines(output) {
		if strings.Contains(line, `"control_cancel_request"`) {
			cancellations.WriteString(line)
		} else {
			others.WriteString(line)
		}
	}
	return others.String() + cancellations.String()
}

// print writes frames, or the lines of a file.
func (h *hosting) print(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if rest, is := strings.CutPrefix(line, "= "); is {
			h.out.WriteString("= " + h.withoutPaths(rest) + "\n")
			continue
		}
		line = strings.TrimPrefix(line, "< ")
		in, err := plainjson.Parse([]byte(line))
		if kind, _ := plainjson.StringValue(in.Get("type")); kind == "control_request" {
			h.asked, _ = plainjson.StringValue(in.Get("request_id"))
		}
		if err == nil && !h.whole {
			in = in.Delete("uuid", "session_id", "timestamp", "request_id", "parent_tool_use_id")
			if message, err := plainjson.Parse(in.Get("message")); err == nil && message.Get("usage") != nil {
				in = in.Set("message", message.Delete("id", "type", "role", "context_management", "usage").Raw())
			}
			line = string(in.Raw())
		}
		line = h.withoutPaths(line)
		if strings.Contains(line, `"subtype":"init"`) && len(line) > 100 {
			line = line[:100] + "…"
		}
		if !h.whole && len(line) > 900 {
			line = line[:900] + "…"
		}
		h.out.WriteString("< " + line + "\n")
	}
}

func (h *hosting) withoutPaths(text string) string {
	return strings.NewReplacer(h.work, "$WORK", strings.NewReplacer("/", "-", ".", "-").Replace(h.work), "$WORK").Replace(text)
}
