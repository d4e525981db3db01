// Package interop runs unmodified programs against the binary: programs written with Anthropic's Agent SDKs, installed
// from their registries, and programs that use the older breakpoint protocol.
//
// If a registry cannot be reached, the test is skipped with a message, or fails if CLAUDELESS_INTEROP is "require", as
// in CI. Without the variable no test runs, because the SDKs must be downloaded.
package interop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sdkProject is one SDK or library: its pinned packages, the command that installs them into a cache directory, and the
// command that runs a program with them.
type sdkProject struct {
	name, programs string
	// program that must be installed, otherwise the project is skipped; "" means that it must not be skipped
	tool    string
	api     bool   // its programs use the Messages API, whose address is API
	pins    string // file that names the versions
	install func(ctx context.Context, dir, pins string) error
	command func(dir, program string) []string
}

func sdkProjects() []sdkProject {
	inPython := func(name string) sdkProject {
		return sdkProject{
			name: name, programs: name + "/*.py", pins: name + "/requirements.txt",
			install: func(ctx context.Context, dir, pins string) error {
				return errors.Join(
					run(ctx, dir, "python3", "-m", "venv", "--clear", "venv"), // an interrupted installation may have left a part
					run(ctx, dir, filepath.Join(dir, "venv", "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--requirement", pins),
				)
			},
			command: func(dir, program string) []string {
				return []string{filepath.Join(dir, "venv", "bin", "python"), program}
			},
		}
	}
	inNode := func(name, dir string) sdkProject {
		return sdkProject{
			name: name, programs: dir + "/*.mjs", pins: dir + "/package.json",
			install: func(ctx context.Context, dir, pins string) error {
				if err := copyFile(filepath.Join(dir, "package.json"), pins); err != nil {
					return err
				}
				// The platform packages contain the real CLI, which is not needed here.
				return run(ctx, dir, "npm", "install", "--silent", "--omit=optional", "--no-audit", "--no-fund")
			},
			command: func(dir, program string) []string {
				// Packages are resolved from the directory of the program.
				here := filepath.Join(dir, filepath.Base(program))
				if err := copyFile(here, program); err != nil {
					return []string{"false"}
				}
				return []string{"node", here}
			},
		}
	}
	inGo := func(name string) sdkProject {
		return sdkProject{
			name: name, programs: name + "/main.go", pins: name + "/go.sum",
			install: func(ctx context.Context, _, pins string) error {
				return run(ctx, filepath.Dir(pins), "go", "mod", "download")
			},
			command: func(_, program string) []string { return []string{"go", "-C", filepath.Dir(program), "run", "."} },
		}
	}
	cargo := func(verb, dir, manifest string) []string {
		return []string{"cargo", verb, "--quiet", "--locked", "--manifest-path", manifest, "--target-dir", filepath.Join(dir, "target")}
	}
	asking := func(h sdkProject) sdkProject { h.api = true; return h }
	return []sdkProject{
		inPython("python"),
		inPython("debugger"),
		inNode("typescript", "ts"),
		asking(inPython("api/anthropic")),
		asking(inPython("api/langchain")),
		asking(inPython("api/litellm")),
		asking(inPython("api/pydanticai")),
		asking(inNode("api/ts", "api/ts")),
		asking(inGo("api/go")),
		inNode("readers", "readers"),
		inGo("hosts/go"),
		inNode("hosts/node", "hosts/node"),
		{
			name: "hosts/rust", tool: "cargo", programs: "hosts/rust/src/main.rs", pins: "hosts/rust/Cargo.lock",
			install: func(ctx context.Context, dir, pins string) error {
				return run(ctx, dir, cargo("build", dir, filepath.Join(filepath.Dir(pins), "Cargo.toml"))...)
			},
			command: func(dir, program string) []string {
				return cargo("run", dir, filepath.Join(filepath.Dir(program), "..", "Cargo.toml"))
			},
		},
	}
}

func TestInterop(t *testing.T) {
	mode := os.Getenv("CLAUDELESS_INTEROP")
	if mode == "" {
		t.Skip("CLAUDELESS_INTEROP is not set; make interop does it")
	}
	binary := filepath.Join(t.TempDir(), "claude")
	if err := run(t.Context(), ".", "go", "build", "-o", binary, "../../cmd/claudeless"); err != nil {
		t.Fatal(err)
	}
	// The commands of claudeless exist only under the name claudeless.
	if err := os.Link(binary, filepath.Join(filepath.Dir(binary), "claudeless")); err != nil {
		t.Fatal(err)
	}
	scenario, err := filepath.Abs("scenario.toml")
	if err != nil {
		t.Fatal(err)
	}
	api := serveAPI(t, filepath.Join(filepath.Dir(binary), "claudeless"))
	for _, h := range sdkProjects() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			if h.api {
				h.command = withAPI(h.command, api)
			}
			if _, err := exec.LookPath(h.tool); h.tool != "" && err != nil {
				fmt.Fprintf(os.Stderr, "\n*** SKIPPED: the %s half needs %s, which is not here ***\n\n", h.name, h.tool)
				t.SkipNow()
			}
			dir, err := h.installDir(t.Context())
			switch {
			case err != nil && mode == "require":
				t.Fatalf("the %s half cannot be installed: %v", h.name, err)
			case err != nil:
				fmt.Fprintf(os.Stderr, "\n*** SKIPPED: the %s half cannot be installed: %v ***\n\n", h.name, err)
				t.SkipNow()
			}
			programs, err := filepath.Glob(h.programs)
			if err != nil || len(programs) == 0 {
				t.Fatal("no programs", err)
			}
			for _, program := range programs {
				t.Run(filepath.Base(program), func(t *testing.T) { h.run(t, dir, program, binary, scenario) })
			}
		})
	}
}

// serveAPI serves the scenario of the Messages API until the test ends.
func serveAPI(t *testing.T, binary string) (url string) {
	t.Helper()
	port := filepath.Join(t.TempDir(), "port")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "serve", "api/scenario.toml", "--port-file", port)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Error("the server:", err)
		}
	})
	for range 200 {
		if text, err := os.ReadFile(port); err == nil {
			return "http://127.0.0.1:" + strings.TrimSpace(string(text))
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("the server does not come up")
	return ""
}

// withAPI passes the address of the Messages API to a program.
func withAPI(command func(dir, program string) []string, url string) func(dir, program string) []string {
	return func(dir, program string) []string {
		return append([]string{"env", "API=" + url, "LITELLM_LOCAL_MODEL_COST_MAP=True"}, command(dir, program)...)
	}
}

// run runs one program and shows its output if it fails.
func (h sdkProject) run(t *testing.T, dir, program, binary, scenario string) {
	t.Helper()
	abs, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	words := h.command(dir, abs)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(os.Environ(), toolchains()...)
	cmd.Env = append(cmd.Env, "CLAUDELESS_BIN="+binary, "CLAUDELESS="+filepath.Join(filepath.Dir(binary), "claudeless"), "CLAUDELESS_SCENARIO="+scenario, "HOME="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1")
	output, err := cmd.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Error(err)
	}
}

// toolchains returns variables that locate the caches of toolchains, which are usually below HOME.
func toolchains() []string {
	home, _ := os.UserHomeDir() // without a home directory they report it
	cache, _ := os.UserCacheDir()
	var env []string
	for name, dir := range map[string]string{
		"GOPATH": filepath.Join(home, "go"), "GOCACHE": filepath.Join(cache, "go-build"),
		"CARGO_HOME": filepath.Join(home, ".cargo"), "RUSTUP_HOME": filepath.Join(home, ".rustup"),
	} {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+dir)
		}
	}
	return env
}

// installDir returns the cached directory for the pinned versions, and fills it first if necessary. A directory that
// was filled only in part is not used.
func (h sdkProject) installDir(ctx context.Context) (string, error) {
	pins, err := filepath.Abs(h.pins)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(pins)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "claudeless-interop", fmt.Sprintf("%s-%.6x", strings.ReplaceAll(h.name, "/", "-"), sha256.Sum256(content)))
	whole := filepath.Join(dir, "installed")
	if _, err := os.Stat(whole); err == nil {
		return dir, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := h.install(ctx, dir, pins); err != nil {
		return "", err
	}
	return dir, os.WriteFile(whole, nil, 0o644)
}

// run runs a tool; its output is part of the error.
func run(ctx context.Context, dir string, words ...string) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w\n%s", words, err, output)
	}
	return nil
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
