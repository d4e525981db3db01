//go:build interop

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The versions tested against.
const (
	everythingVersion = "2026.8.31"
	filesystemVersion = "2026.8.31"
	memoryVersion     = "2026.8.31"
	timeVersion       = "2026.10.19"
	gitVersion        = "2026.10.19"
	python1Version    = "1.30.0" // FastMCP
	python2Version    = "2.3.0"
)

// peer is a third-party server with its transports.
type peer struct {
	name       string
	setUp      func(t *testing.T) (commandOf, error) // returns an error if the server cannot be installed here
	transports []transportPath
	suite      []step
	// prompt is the slash command of a prompt, and what must be in it; empty means no prompts.
	prompt, promptText string
}

// commandOf returns the command line of a server for a transport. port is used by the remote ones.
type commandOf func(transport string, port int) (argv, env []string)

// transportPath is a transport and the path of its URL; stdio has no path.
type transportPath struct{ transport, path string }

var (
	stdio    = transportPath{"stdio", ""}
	overHTTP = transportPath{"http", "/mcp"}
	overSSE  = transportPath{"sse", "/sse"}
)

var peers = []peer{
	{"server-everything", installNpm("@modelcontextprotocol/server-everything", everythingVersion, everythingCommand), []transportPath{stdio, overHTTP, overSSE}, everythingSuite, "/mcp__p__args-prompt Paris", "Paris"},
	{"server-filesystem", installNpm("@modelcontextprotocol/server-filesystem", filesystemVersion, filesystemCommand), []transportPath{stdio}, filesystemSuite, "", ""},
	{"python-sdk-1", installPython(python1Version), []transportPath{stdio, overHTTP, overSSE}, sdkSuite, "/mcp__p__greet Ada", "Please greet Ada"},
	{"python-sdk-2", installPython(python2Version), []transportPath{stdio, overHTTP, overSSE}, sdkSuite, "/mcp__p__greet Ada", "Please greet Ada"},
	{"go-sdk", buildGoPeer("gosdk"), []transportPath{stdio, overHTTP, overSSE}, sdkSuite, "/mcp__p__greet Ada", "Please greet Ada"},
}

func everythingCommand(main string) commandOf {
	return func(transport string, port int) (argv, env []string) {
		if transport == "http" {
			transport = "streamableHttp"
		}
		return []string{"node", main, transport}, []string{"PORT=" + strconv.Itoa(port)}
	}
}

func filesystemCommand(main string) commandOf {
	return func(string, int) (argv, env []string) { return []string{"node", main, "."}, nil }
}

// installNpm installs a package in its own directory.
func installNpm(pkg, version string, command func(main string) commandOf) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		dir := filepath.Join(cacheDir(t), filepath.Base(pkg)+"-"+version)
		main := filepath.Join(dir, "node_modules", filepath.FromSlash(pkg), "dist", "index.js")
		err := runOnce(dir, []string{"npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", dir, pkg + "@" + version})
		return command(main), err
	}
}

// installPython installs the SDK into its own environment.
func installPython(version string) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		dir := filepath.Join(cacheDir(t), "python-"+version)
		python := filepath.Join(dir, "bin", "python")
		err := runOnce(dir, []string{"python3", "-m", "venv", dir}, []string{python, "-m", "pip", "install", "-q", "mcp==" + version})
		script, _ := filepath.Abs("peer.py")
		return func(transport string, port int) (argv, env []string) {
			if transport == "stdio" {
				return []string{python, script}, nil
			}
			return []string{python, script, transport, strconv.Itoa(port)}, nil
		}, err
	}
}

// installPythonServer installs a server of PyPI, which is a module, into its own environment.
func installPythonServer(name, version string) func(*testing.T) (commandOf, error) {
	return func(t *testing.T) (commandOf, error) {
		t.Helper()
		dir := filepath.Join(cacheDir(t), name+"-"+version)
		err := runOnce(dir, []string{"python3", "-m", "venv", dir}, []string{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", name + "==" + version})
		return func(string, int) (argv, env []string) { return []string{filepath.Join(dir, "bin", name)}, nil }, err
	}
}

// runOnce runs commands that fill dir, unless an earlier call did so.
func runOnce(dir string, commands ...[]string) error {
	done := filepath.Join(dir, ".complete")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	for _, argv := range commands {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
		}
	}
	return os.WriteFile(done, nil, 0o600)
}

func cacheDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("INTEROP_DIR"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "claudeless-interop")
}

// skipped lists the peers that could not be installed.
var skipped struct {
	sync.Mutex
	reasons []string
}

func TestMain(m *testing.M) {
	if file := os.Getenv("INTEROP_TAP"); file != "" {
		if err := runTap(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	slices.Sort(skipped.reasons)
	for _, reason := range skipped.reasons {
		fmt.Fprintf(os.Stderr, "INTEROP: NOT TESTED: %s\n", reason)
		if os.Getenv("INTEROP_REQUIRE") != "" {
			code = 1
		}
	}
	os.Exit(code)
}

// startPeer starts a remote peer and waits until it accepts connections. It is stopped at the end of the test.
func startPeer(t *testing.T, command commandOf, transport string) (port int) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	argv, env := command(transport, port)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server said\n%s", log.String())
		}
	})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for {
		c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			c.Close()
			return port
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not listen: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
