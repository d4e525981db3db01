package lane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/proc"
	"github.com/claudeless/claudeless/internal/base/process"
	"github.com/claudeless/claudeless/internal/parity"
	"github.com/claudeless/claudeless/internal/parity/backend"
)

// play is one lane under way.
type play struct {
	*Job
	Lane
	sys   *process.System
	rec   parity.Recording
	began time.Time

	env     []string
	servers []*proc.Process
	api     *backend.API
	front   *tlsFront // nil = the base URL is that of the backend
}

// at is a path in the surroundings.
func (p *play) at(parts ...string) string {
	return filepath.Join(append([]string{p.Dir, "w"}, parts...)...)
}

// Directories are the working and the home directory of the lanes of a job in dir.
func Directories(dir string) (cwd, home string) {
	return filepath.Join(dir, "w", "cwd"), filepath.Join(dir, "w", "home")
}

func (p *play) config() string { return p.at("home", ".claude") }

// real says that a real claude runs.
func (p *play) real() bool { return p.Program != "" }

func (p *play) problem(kind, text string) {
	p.rec.Problems = append(p.rec.Problems, parity.Problem{Kind: kind, Text: text})
}

// prepare makes the surroundings anew, in the place of those of the lane before.
func (p *play) prepare(ctx context.Context) error {
	if err := os.RemoveAll(p.at()); err != nil {
		return err
	}
	for _, dir := range []string{p.at("cwd"), p.at("bin"), p.at("tmp"), p.at("rec", "mcp"), p.config()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	p.rec.Paths = map[string]string{
		p.at("cwd"): "<cwd>", p.at("home"): "<home>", p.at("tmp"): "<tmp>", p.at(): "<dir>",
		strings.NewReplacer("/", "-", ".", "-").Replace(p.at("cwd")): "<project>",
	}
	if err := errors.Join(p.files(), p.programs()); err != nil {
		return err
	}
	var err error
	p.api, err = backend.Listen(ctx, backend.Options{Scenario: p.scenarioFile(), Record: p.at("rec", "api.jsonl"), CWD: p.at("cwd"), System: p.sys})
	if err != nil {
		return err
	}
	p.rec.Paths[strings.TrimPrefix(p.api.URL, "http://")] = "<api>"
	if p.DefaultURL {
		backend, err := url.Parse(p.api.URL)
		if err != nil {
			return err
		}
		if p.front, err = listenTLS(backend, p.at("ca.pem")); err != nil {
			return err
		}
	}
	p.environ(p.api.URL)
	return p.serve(ctx)
}

// files puts those of the case in place.
func (p *play) files() error {
	all := map[string][]byte{p.at("scenario.toml"): p.Case.Scenario}
	seed, err := json.Marshal(map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "9.9.9", "theme": "dark", "hasSeenAutoDefaultNotice": true,
		"customApiKeyResponses": map[string]any{"approved": []string{key}, "rejected": []string{}},
		"projects":              map[string]any{p.at("cwd"): map[string]any{"hasTrustDialogAccepted": true}},
	})
	if err != nil {
		return err
	}
	all[filepath.Join(p.config(), ".claude.json")] = seed
	if p.Case.Settings != nil {
		all[filepath.Join(p.config(), "settings.json")] = p.Case.Settings
	}
	if p.Case.MCP != nil {
		all[p.at("mcp.json")] = p.Case.MCP
	}
	for name, data := range p.Case.Files {
		all[p.at("cwd", filepath.FromSlash(name))] = data
	}
	for name, data := range p.Case.Home {
		all[p.at("home", filepath.FromSlash(name))] = data
	}
	for name, data := range all {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(string(data), "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(name, data, mode); err != nil {
			return err
		}
	}
	return nil
}

// key opens nothing.
const key = "dummy"

// programs are first on PATH: claudeless, whose fixtures record their traffic, and
// the hook that records what it is told and says what it is given.
func (p *play) programs() error {
	quoted := "'" + strings.ReplaceAll(p.Self, "'", `'\''`) + "'"
	fixture := fmt.Sprintf("#!/bin/sh\ncase \"$1 $2\" in 'fixture serve')\n  exec %s \"$@\" --record '%s'/\"$(basename \"$3\" .toml)\".jsonl ;;\nesac\nexec %s \"$@\"\n",
		quoted, p.at("rec", "mcp"), quoted)
	hook := fmt.Sprintf("#!/bin/sh\nin=$(cat)\nprintf '%%s\\n' \"$in\" >>'%s'\n[ $# -eq 0 ] || printf '%%s' \"$1\"\n", p.at("rec", "hooks.jsonl"))
	if p.Case.InertShell {
		if err := os.WriteFile(p.at("bin", "bash"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink(p.Self, p.at("bin", "claude")),
		os.WriteFile(p.at("bin", "claudeless"), []byte(fixture), 0o755),
		os.WriteFile(p.at("bin", "record-hook"), []byte(hook), 0o755),
	)
}

// scenarioFile is where both lanes find the scenario.
func (p *play) scenarioFile() string {
	if filepath.Ext(p.Case.File) == ".txtar" {
		return p.at("scenario.toml")
	}
	return filepath.Join(p.Case.Dir, filepath.Base(p.Case.File))
}

// environ is the whole environment of the program.
func (p *play) environ(addr string) {
	p.env = []string{
		"PATH=" + p.at("bin") + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + p.at("home"), "CLAUDE_CONFIG_DIR=" + p.config(), "TMPDIR=" + p.at("tmp"),
		"TERM=dumb", "LANG=C.UTF-8", "SHELL=/bin/bash", "USER=somebody", "TZ=UTC", "IS_SANDBOX=1",
		"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + addr,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	}
	if p.Case.InertShell { // the real CLI starts the shell of SHELL, the double that of PATH
		p.env = append(slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, "SHELL=") }), "SHELL="+p.at("bin", "bash"))
	}
	if p.DefaultURL {
		p.env = append(p.env, "ANTHROPIC_BASE_URL=", "NODE_EXTRA_CA_CERTS="+p.at("ca.pem"))
	}
	for _, kv := range slices.Concat(p.env, p.Case.Env) { // an empty value takes a variable away
		if name, value, _ := strings.Cut(kv, "="); value == "" {
			p.env = slices.DeleteFunc(p.env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		} else if !slices.Contains(p.env, kv) {
			p.env = append(p.env, kv)
		}
	}
	if p.real() {
		return
	}
	p.env = append(p.env, "CLAUDELESS_SCENARIO="+p.scenarioFile(), "CLAUDELESS_CAPTURE="+p.at("rec", "journal.jsonl"), "CLAUDELESS_STRICT_MCP=report")
	if p.Version != "" {
		p.env = append(p.env, "CLAUDELESS_CLAUDE_VERSION="+p.Version)
	}
}

// serve starts the fixtures that are served over HTTP.
func (p *play) serve(ctx context.Context) error {
	for _, s := range p.Case.Servers {
		server, err := proc.Start(ctx, proc.Options{Command: proc.Command{
			Path: p.at("bin", "claudeless"), Args: []string{"fixture", "serve", s.Fixture, "--http", "127.0.0.1:0"}, Env: p.env, Dir: p.at("cwd"),
		}})
		if err != nil {
			return err
		}
		p.servers = append(p.servers, server)
		line, _ := bufio.NewReader(server.Stdout()).ReadString('\n') // what is missing is told below
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.Host == "" {
			return fmt.Errorf("serving %s: %s", s.Fixture, strings.TrimSpace(server.StderrTail()))
		}
		p.env = append(p.env, s.Name+"_URL=http://"+u.Host)
	}
	return nil
}

// close ends what was started.
func (p *play) close(ctx context.Context) error {
	for _, s := range p.servers {
		s.Signal(os.Interrupt)
		s.Stop(ctx)
	}
	var err error
	if p.front != nil {
		err = p.front.Close()
	}
	if p.api == nil {
		return err
	}
	return errors.Join(err, p.api.Close())
}
