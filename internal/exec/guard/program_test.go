package guard

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeFile writes a file and creates its parent directories.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestPrograms: some command lines run a real claude, others only mention its files.
func TestPrograms(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const pkg = "node_modules/@anthropic-ai/claude-code/"
	for name, text := range map[string]string{
		pkg + "cli.js": "#!/usr/bin/env node\n", pkg + "install.cjs": "", pkg + "vendor/ripgrep/rg": "", pkg + "bin/claude.exe": "",
		"node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude": "", "node_modules/@anthropic-ai/sdk/cli.js": "",
		"home/.local/share/claude/versions/2.1.330": "", "venv/claude_agent_sdk/_bundled/claude": "",
		"bin/node22": "", "bin/ld-linux-x86-64.so.2": "", "bin/ld-musl-x86_64.so.1": "", "bin/ld": "", "bin/sh": "", "bin/cat": "", "own/claude": "", "self": "",
		"copied/tool": "#!/usr/bin/env node\n// (c) Anthropic PBC. All rights reserved.\n", "copied/notes": "(c) Anthropic PBC\n", "copied/empty": "",
		"shim/claude": "#!/bin/sh\n# Made by claudeless, in place of claude.\n", pkg + "claude": "#!/bin/sh\n# Made by claudeless, in place of claude.\n",
	} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	for link, to := range map[string]string{"bin/claude": pkg + "cli.js", "bin/double": "self", "own/real": pkg + "cli.js"} {
		if err := os.Symlink(filepath.Join(dir, to), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	own := ClaudelessFiles{Executable: filepath.Join(dir, "self"), ShimDir: filepath.Join(dir, "own")}
	for line, want := range map[string]string{
		pkg + "cli.js -p hi": pkg + "cli.js", "bin/claude": pkg + "cli.js", pkg + "bin/claude.exe": pkg + "bin/claude.exe",
		"node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude": "node_modules/@anthropic-ai/claude-agent-sdk-linux-x64/claude",
		"home/.local/share/claude/versions/2.1.330 -p":                 "home/.local/share/claude/versions/2.1.330",
		"venv/claude_agent_sdk/_bundled/claude":                        "venv/claude_agent_sdk/_bundled/claude",
		"bin/node22 --no-warnings " + pkg + "cli.js -p hi":             pkg + "cli.js",
		"bin/sh bin/claude": pkg + "cli.js", "copied/tool": "copied/tool",
		"bin/ld-linux-x86-64.so.2 " + pkg + "bin/claude.exe --version": pkg + "bin/claude.exe", "bin/ld-musl-x86_64.so.1 --library-path x copied/tool": "copied/tool",
		"bin/ld-linux-x86-64.so.2 --argv0 x --inhibit-cache bin/node22 bin/claude": pkg + "cli.js",
		"bin/ld-linux-x86-64.so.2 --list copied/tool":                              "", "bin/ld-linux-x86-64.so.2 bin/cat copied/tool": "", "bin/ld-linux-x86-64.so.2": "",
		"bin/ld-linux-x86-64.so.2 own/claude": "", "bin/ld-linux-x86-64.so.2 DIR/own/real": "", "bin/ld-linux-x86-64.so.2 --preload copied/tool bin/cat": "", "bin/ld copied/tool": "",
		"bin/node22 " + pkg + "install.cjs": "", "bin/cat " + pkg + "cli.js": "", pkg + "vendor/ripgrep/rg": "",
		"bin/sh -c " + pkg + "cli.js": "", "bin/node22 -e x " + pkg + "cli.js": "", "bin/node22": "", "bin/node22 --version": "",
		"node_modules/@anthropic-ai/sdk/cli.js": "", "own/claude": "", "bin/double": "", "shim/claude": "", pkg + "claude": "", "copied/notes": "", "copied/empty": "",
		"gone/claude": "", "": "", "DIR/own/real": "", "bin/sh DIR/own/real": "", "bin/sh - DIR/own/real": "", "bin/sh gone/claude": "", "bin/sh - bin/claude": pkg + "cli.js",
	} {
		var l realCLIFileCache
		if want != "" {
			want = filepath.Join(dir, want)
		}
		for range 2 { // the second time from memory
			if got := l.realClaudeOfCommandLine(own, strings.Split(strings.ReplaceAll(line, "DIR", dir), " "), dir); got != want {
				t.Errorf("%q runs %q, want %q", line, got, want)
			}
		}
	}
}

// writeExecutable creates an executable with or without an embedded script.
func writeExecutable(t *testing.T, section, script string, size int64) string {
	t.Helper()
	names := "\x00" + section + "\x00.shstrtab\x00"
	head := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Shoff: 4096, Ehsize: 64, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: 8192, Size: uint64(size - 8192)},
		{Name: uint32(len(section) + 2), Type: uint32(elf.SHT_STRTAB), Off: 512, Size: uint64(len(names))},
	}
	var b bytes.Buffer
	for at, part := range map[int64]any{0: head, 512: []byte(names), 4096: sections, size - 300: []byte(script)} {
		b.Grow(int(size))
		raw := new(bytes.Buffer)
		if err := binary.Write(raw, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
		if b.Len() < int(size) {
			b.Write(make([]byte, size))
		}
		copy(b.Bytes()[at:], raw.Bytes())
	}
	path := filepath.Join(t.TempDir(), "program")
	writeFile(t, path, b.String())
	return path
}

// TestSigned: a program is recognised by its embedded script in any directory.
func TestSigned(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const engine = 20 << 20 // the smallest size of a program with an embedded engine
	zeros := filepath.Join(t.TempDir(), "zeros")
	writeFile(t, zeros, "")
	if err := os.Truncate(zeros, engine); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path string
		want bool
	}{
		"real":           {writeExecutable(t, ".bun", "// @bun\n// (c) Anthropic PBC. All rights reserved.", engine), true},
		"a small one":    {writeExecutable(t, ".bun", "// @bun\n// (c) Anthropic PBC. All rights reserved.", engine-1), false},
		"another's":      {writeExecutable(t, ".bun", "// @bun\n// (c) somebody else", engine), false},
		"other section":  {writeExecutable(t, ".data", "// (c) Anthropic PBC. All rights reserved.", engine), false},
		"no program":     {zeros, false},
		"this test":      {self, false},
		"a folder":       {t.TempDir(), false},
		"nothing at all": {"/no/such/file", false},
	} {
		if got := hasRealCLISignature(tt.path); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// piecewiseReader is a reader that returns its content in pieces of any size.
type piecewiseReader struct{ rest []string }

func (p *piecewiseReader) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[0])
	p.rest = p.rest[1:]
	return n, nil
}

// A text is found even if it spans two pieces.
func TestHolds(t *testing.T) {
	for _, tt := range []struct {
		pieces []string
		want   bool
	}{
		{[]string{"abcdef"}, true},
		{[]string{"xxabc", "defxx"}, true},
		{[]string{"a", "b", "c", "d", "e", "f"}, true},
		{[]string{"abcde", "xf"}, false},
		{[]string{"ab", "def"}, false},
		{nil, false},
	} {
		if got := readerContains(&piecewiseReader{tt.pieces}, "abcdef"); got != tt.want {
			t.Errorf("%q: %v", tt.pieces, got)
		}
	}
}

// TestPoll: a descendant process that runs a real claude is found, at the latest by the last poll, and other
// processes are ignored.
func TestPoll(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("there is no /proc here")
	}
	dir := t.TempDir()
	for name, breaches := range map[string]int{"node_modules/@anthropic-ai/claude-code/cli.js": 1, "mine/cli.js": 0} {
		path := filepath.Join(dir, name)
		writeFile(t, path, "#!/bin/sh\necho ready\nread -r x\n")
		cmd := exec.Command("env", "-i", path)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		var l BreachCollector
		p := StartRealClaudePoller(&l, ClaudelessFiles{})
		p.ScanOnceMoreAndStop()
		p.ScanOnceMoreAndStop()
		in.Close()
		if err := cmd.Wait(); err == nil {
			t.Error("it was to end without a line to read")
		}
		got := l.Breaches()
		if len(got) != breaches {
			t.Errorf("%s: %+v", name, got)
		}
		if breaches > 0 && (got[0].Kind != BreachRealClaude || got[0].PID != cmd.Process.Pid || !strings.Contains(got[0].Text, "a real claude was started: ")) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A file is examined only once, and none is left open.
func TestProgramsAreKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tool")
	writeFile(t, path, "#!/bin/sh\n// (c) Anthropic PBC\n")
	files := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("there is no /proc here")
		}
		return len(all)
	}
	before := files()
	var known, fresh realCLIFileCache
	for _, want := range []bool{true, true} {
		if got := known.isRealCLIFile(ClaudelessFiles{}, path); got != want {
			t.Errorf("%v, want %v", got, want)
		}
		writeFile(t, path, "#!/bin/sh\n")
	}
	if fresh.isRealCLIFile(ClaudelessFiles{}, path) || IsShim(path) {
		t.Error("a script without a signature is real")
	}
	if after := files(); after > before {
		t.Errorf("%d files are open, before %d", after, before)
	}
}
