package permission_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// commandGrammar returns the alternatives of each symbol of a grammar. A symbol in angle brackets is replaced
// by a random alternative until no symbol is left. The commands run in a private directory and are harmless:
// the programs are touch and programs that only read, and no word is a path that exists on this machine.
func commandGrammar() map[string][]string {
	return map[string][]string{
		"line": {
			"<cmd>", "<cmd>", "<cmd>", "<cmd> | <cmd>", "<cmd>; <cmd>", "<cmd> && <cmd>", "{ <cmd>; } <redir>", "(<cmd>) <redir>",
			"while false; do <cmd>; done <redir>", "if <test>; then <cmd>; fi", "<test>", "<test> && <cmd>", "! <cmd>", "<assign>; <cmd>", "<assign>",
			"<cmd> <note>\n<cmd>", "<cmd> <note>\n<cmd> <note>\n<cmd>", "<note>\n<cmd>", "<cmd> | <note>\n<cmd>", "<cmd> && <note>\n<cmd>", "(<cmd> <note>\n<cmd>)",
			"<cmd> <next><cmd>", "<cmd><next><cmd>", "cat <<'E' <note>\n<word>\nE\n<cmd>", "cat <<E <note>\n<note>\nE\n<cmd>", "if <test> <note>\nthen <cmd>; fi",
			"echo $(<cmd> <note>\n<cmd>)", "echo \"<note>\n<cmd>\"", "<cmd>\r\n<cmd>", "<cmd> | <next><cmd>",
			"for i in a; do <cmd>; done", "for ((i = <arith>; i < 1; i++)); do <cmd>; done", "<cmd> <redir>", "cd <dir> && <cmd>", "<assign>; <test>",
		},
		"cmd": {
			"cat <file>", "cat <file> <file>", "head -n 1 <file>", "grep <gopt> x <file>", "sort <sopt> <file>", "sort <sopt> <sopt> <file>", "uniq <file> <file>",
			"wc -l <file>", "echo <word>", "echo <word> | xargs <xopt> <reader>", "date <dopt>", "sed <sedopt> <file>", "find . <fopt>", "git <gitopt>", "ls <file>",
			"tail -n 1 <file>", "diff <file> <file>", "cut -c1 <file>", "test <words>", "[ <words> ]", "true", "file <fileopt> <file>", "tree <topt>", "env <wrap> touch <new>",
			"timeout 1 touch <new>", "bash -c 'touch <new>'", "eval touch <new>", "$'\\x74ouch' <new>", "{touch,<new>}", "tee <new>", "cp <file> <new>", "printf %s <word>",
		},
		"note":  {"#\\", "# x\\", "#", "# '", "# \"", "# $(", "# `", "# x\\\\", "# x\\\r", "# x\r", "#\\\n#\\", "x#\\", "\\#\\", "'#'\\", "# <<E", "# ;"},
		"next":  {"\\\n", " \\\n", ";\\\n", " \\\r\n", "; \\\n  ", "&& \\\n", "\n\\\n"},
		"test":  {"[[ <words> ]]", "test <words>", "[ <words> ]", "[[ <operand> <cmp> <operand> ]]", "[[ <unary> <operand> ]]", "! [[ <unary> <operand> ]]"},
		"words": {"<unary> <operand>", "<operand> <cmp> <operand>", "<operand>"},
		"unary": {"-f", "-v", "-n", "-z", "-R", "-e"},
		"cmp":   {"-eq", "-lt", "=", "-nt", "-gt"},
		"operand": {
			"1", "f", "'a[$(touch <new>)]'", "a", "\"a[0]\"", "'a[`touch <new>`]'", "x", "\\a[\\$\\(touch\\ <new>\\)]",
		},
		"arith":  {"0", "x", "a[0]"},
		"assign": {"x='a[$(touch <new>)]'", "a[x]=1", "a=([x]=1)", "x=1", "y=$HOME"},
		"redir":  {"> <new>", ">> <new>", "2> <new>", "&> <new>", ">| <new>", "<> <new>", "< <file>", ">& <new>", "2>/dev/null", "{a[x]}<f", ">&1"},
		"file":   {"f", "sub/g", "link", "f*", "\"$HOME\"/f", "$'f'", "{f,sub/g}", "-- f", "-", "<word>"},
		"word":   {"x", "'a b'", "\"$x\"", "$(touch <new>)", "`touch <new>`", "<(touch <new>)", "~", "-o <new>", "--output=<new>", "${x:=1}", "$((x))", "${a[x]}"},
		"new":    {"made", "f", "sub/made", "link"},
		"dir":    {"sub", ".", "-"},
		"gopt":   {"", "-n", "-c", "-f f", "-e", "--inc=x"},
		"sopt": {
			"-r", "-n", "-o <new>", "-o<new>", "--output=<new>", "--out <new>", "--o=<new>", "-ro <new>", "--random-source --", "-k --", "-k 1", "--key --", "-t --",
			"--compress-program=touch", "-T sub", "--files0-from=f", "",
		},
		"dopt":    {"+%s", "-u", "-r f", "-d @0", ""},
		"xopt":    {"-n 1", "-I {}", "-0", "-n --", "-t", ""},
		"reader":  {"echo", "wc", "head", "touch", "grep x", "-- touch"},
		"sedopt":  {"-n 1p", "-n 'w <new>'", "'w <new>'", "-n -e 'w <new>'", "-i s/a/b/", "-n 1p -i", "-n --expression='w <new>'", "s/a/b/w<new>", "'1e touch <new>'"},
		"fopt":    {"-name f", "-delete", "-fprint <new>", "-fls <new>", "-exec touch <new> +", "-exec touch <new> \\;", "-printf x", "-fprintf <new> x", "-newer f"},
		"gitopt":  {"diff --no-index --output=<new> f sub/g", "diff --no-index --outp=<new> f sub/g", "diff --no-index f sub/g", "ls-remote --u='touch <new>;' .", "ls-remote --exec='touch <new>;' .", "status"},
		"fileopt": {"-b", "-C -m", "--compile -m", "--comp"},
		"topt":    {"-a", "-o <new>", "-a -o<new>", "--output=<new>", "-R"},
		"wrap":    {"-u X", "A=1", ""},
	}
}

// commandLine generates one line of the grammar.
func commandLine(r *rand.Rand) string {
	words := commandGrammar()
	line := "<line>"
	for range 40 {
		before, rest, found := strings.Cut(line, "<")
		for found && (rest == "" || words[name(rest)] == nil) { // a redirection
			var more string
			more, rest, found = strings.Cut(rest, "<")
			before += "<" + more
		}
		if !found {
			break
		}
		key := name(rest)
		choices := words[key]
		line = before + choices[r.IntN(len(choices))] + rest[len(key)+1:]
	}
	return line
}

func name(rest string) string { key, _, _ := strings.Cut(rest, ">"); return key }

// dirContent returns the content of a directory: names, types, modification times, contents.
func dirContent(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %s", path, info.Mode())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %s %q", info.ModTime(), data)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// lineOf returns the command line that is generated from a seed.
func lineOf(seed uint64) string { return commandLine(rand.New(rand.NewPCG(seed, 17))) }

// tryReadOnly runs a command line that the engine allows without a rule, and checks that the file system is
// unchanged. It reports whether the command ran.
func tryReadOnly(t *testing.T, bash, line string) (ran bool) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "work")
	for name, text := range map[string]string{"work/f": "b\na\n", "work/sub/g": "x\n", "home/f": "h\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(top, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("f", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	p, err := permission.New(permission.Options{CWD: dir, Home: filepath.Join(top, "home"), AdditionalDirs: []permission.WorkingDirectory{{Path: top}}})
	if err != nil {
		t.Fatal(err)
	}
	if v := p.Decide(newCall("Bash", line)); v.Behavior != permission.Allow {
		return false
	}
	for _, mode := range []protocol.PermissionMode{protocol.ModeDontAsk, protocol.ModePlan, protocol.ModeDefault} {
		if err := p.SetMode(mode); err != nil {
			t.Fatal(err)
		}
		if v := p.Decide(newCall("Bash", line)); v.Behavior != permission.Allow {
			t.Errorf("%s: allowed by default, not in %s", line, mode)
		}
	}
	before := dirContent(t, top)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", line)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + filepath.Join(top, "home"), "PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + filepath.Join(top, "home"), "GIT_CEILING_DIRECTORIES=" + top}
	cmd.WaitDelay = time.Second
	_ = cmd.Run() // a command that fails has changed nothing, or the comparison shows it
	if after := dirContent(t, top); after != before {
		t.Errorf("%q is called read-only and changed\n%sto\n%s", line, before, after)
	}
	return true
}

// TestReadOnlyHoldsForASample runs the same sample of command lines each time.
func TestReadOnlyHoldsForASample(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	const lines = 800
	ran := 0
	for seed := range uint64(lines) {
		if tryReadOnly(t, bash, lineOf(seed)) {
			ran++
		}
	}
	if t.Logf("%d of %d ran", ran, lines); ran < lines/10 {
		t.Error("the sample shows nothing")
	}
}

// FuzzReadOnly checks random command lines like TestReadOnlyHoldsForASample.
func FuzzReadOnly(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash")
	}
	f.Add(uint64(800))
	f.Fuzz(func(t *testing.T, seed uint64) { tryReadOnly(t, bash, lineOf(seed)) })
}
