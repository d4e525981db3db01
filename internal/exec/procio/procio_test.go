package procio_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/exec/procio"
	"github.com/claudeless/claudeless/internal/record/journal"
)

// system is a process whose stdin reports its input.
func system(stdin string, stdout io.Writer) *process.System {
	return &process.System{
		Args: []string{"claude"}, Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: io.Discard,
		Getwd: func() (string, error) { return "/w", nil }, Now: func() time.Time { return time.Unix(0, 0) }, NewID: func() string { return "ID" },
	}
}

// The host's use of the streams is recorded. Each case has the host's actions, the output of claude before them, and
// the expected record.
func TestHost(t *testing.T) {
	const (
		asks     = `{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool"}}` + "\n"
		gives    = `{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{}}}` + "\n"
		takes    = `{"type":"control_cancel_request","request_id":"r"}` + "\n"
		hooks    = `{"type":"control_request","request_id":"i","request":{"subtype":"initialize","hooks":{"Stop":[{}]}}}` + "\n"
		says     = `{"type":"user","message":{"role":"user","content":"hi"}}` + "\n"
		finished = `{"duration_ms":1,"type":"result"}` + "\n"
	)
	for _, tt := range []struct {
		name, out, in string
		want          []string
	}{
		{"answered once", asks, gives, []string{"stdin_closed"}},
		{"never answered", asks, "", []string{"stdin_closed", "request_unanswered"}},
		{"withdrawn and never answered", asks + takes, "", []string{"stdin_closed"}},
		{"answered twice", asks, gives + gives, []string{"answered_twice", "stdin_closed"}},
		{"what nobody asked", "", gives, []string{"stdin_closed"}},
		{"hooks first", "", hooks + says, []string{"stdin_closed"}},
		{"hooks too late", "", says + hooks, []string{"late_initialize", "stdin_closed"}},
		{"after a result", finished, "", []string{"stdin_closed 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var lines bytes.Buffer
			j := journal.New(journal.Options{W: &lines, Now: time.Now})
			s := procio.New(procio.Options{System: system(tt.in, io.Discard), Journal: j}).WrappedSystem()
			for line := range strings.Lines(tt.out) {
				if _, err := io.WriteString(s.Stdout, line); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := io.ReadAll(s.Stdin); err != nil {
				t.Fatal(err)
			}
			var got []string
			for e, err := range journal.Read(&lines) {
				if err != nil {
					t.Fatal(err)
				}
				what := e.Host.What
				if e.Host.Results > 0 {
					what += " 1"
				}
				got = append(got, what)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
		})
	}
}

// armedScreen is the output of an interactive session.
type armedScreen struct {
	io.Writer
	name string
}

func (a *armedScreen) ArmFault(name string) { a.name = name }

// Every fault of the catalogue has a file that describes it, and changes a run; without a fault every byte passes
// unchanged.
func TestFaults(t *testing.T) {
	const run = `{"type":"system","subtype":"init"}` + "\n" + `{"duration_ms":1,"type":"result","subtype":"success","is_error":false,"result":"ok","usage":{"output_tokens":3}}` + "\n"
	play := func(f *procio.Fault) (string, int) {
		var out bytes.Buffer
		e := procio.New(procio.Options{System: system("", &out), Fault: f})
		s := e.WrappedSystem()
		for line := range strings.Lines(run) {
			if _, err := io.WriteString(s.Stdout, line); err != nil {
				t.Fatal(err)
			}
		}
		return out.String(), e.ApplyFaultAndRecordExit(0, "")
	}
	if got, code := play(nil); got != run || code != 0 {
		t.Errorf("without a fault: %q, exit %d", got, code)
	}
	faults := procio.AllFaults()
	files, err := filepath.Glob("faults/*.json")
	if err != nil || len(faults) != 32 || len(files) != len(faults) {
		t.Fatalf("%d faults in %d files, want 32: %v", len(faults), len(files), err)
	}
	schema, err := os.ReadFile("../../../docs/schema/scenario.json") // from the values of `fault` in scenarios
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		const keys = 3 // of a scenario, a rule, a step
		if n := bytes.Count(schema, []byte(strconv.Quote(f.Name))); n < keys {
			t.Errorf("scenarios may have the fault %s in %d of %d places", f.Name, n, keys)
		}
		if f.BugReport == "" || f.RealBehavior == "" || f.CallerAdvice == "" || f.Interface == "" || f.AllowedEnd == "" || procio.FaultByName(f.Name) == nil {
			t.Errorf("%s says too little: %+v", f.Name, f)
		}
		raw, err := os.ReadFile(filepath.Join("faults", f.Name+".json"))
		if err != nil {
			t.Error(err)
			continue
		}
		strict := json.NewDecoder(bytes.NewReader(raw))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&procio.Fault{}); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		if f.Interface == "screen" {
			var armed armedScreen
			if procio.ArmFault(&armed, f.Name); armed.name != f.Name {
				t.Errorf("%s was not armed", f.Name)
			}
			continue // seen by tests of the interactive session
		}
		if waits := f.Effects.StallAfter > 0 || f.Effects.HangAfterResult || f.Effects.DelayAll > 0 || f.Effects.DelayResult > 0; waits || f.Effects.Failure != "" || f.Effects.StderrBytes > 0 {
			continue // seen from outside, by tests of the binary
		}
		if got, code := play(&f); got == run && code == 0 {
			t.Errorf("%s changes nothing", f.Name)
		}
	}
	for name, want := range map[string]string{
		"crlf":           strings.ReplaceAll(run, "\n", "\r\n"),
		"no-result":      run[:strings.Index(run, "\n")+1],
		"json-array":     "[" + strings.Replace(strings.TrimSuffix(run, "\n"), "\n", ",", 1) + "]\n",
		"half-last-line": run[:strings.Index(run, "\n")+1] + run[strings.Index(run, "\n")+1:][:(len(run)-strings.Index(run, "\n")-1)/2],
	} {
		if got, _ := play(procio.FaultByName(name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
