package session

import (
	"context"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeless/claudeless/simulator/permission"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// ruleGrammar generates command lines: words in angle brackets are replaced until none is left. The programs read,
// touch and copy files. All paths are below the private directory.
func ruleGrammar() map[string][]string {
	return map[string][]string{
		"line": {
			"<cmd>", "<cmd>", "<cmd> <redir>", "<cmd>; <cmd>", "<cmd> && <cmd>", "<cmd> | <cmd>", "{ <cmd>; } <redir>", "(<cmd>) <redir>",
			"while true; do <cmd>; break; done <redir>", "if true; then <cmd>; fi <redir>", "for i in a; do <cmd>; done <redir>",
			"cd <dir> && <cmd>", "cd <dir>; <cmd> <redir>", "cd <dir> && cd - && <cmd>", "cd <dir> && cd <dir> && <cmd>", "<cmd>\n)", "<cmd> <redir> <redir>", "<redir>",
		},
		"cmd": {
			"<reader> <file>", "<reader> <file>", "<reader> <file> <file>", "<wrap> <reader> <file>", "echo <file> | xargs <xopt> <reader>", "xargs <xopt> <reader> < list",
			"<wrap> touch <touched>", "touch <touched>", "bash -c 'touch <touched>'", "eval touch <touched>", "find . -maxdepth 0 -exec touch <touched> \\;", "{touch,<touched>}",
			"bash -c '<reader> <plain>'", "eval <reader> <plain>", "$'\\x74ouch' <touched>", "xargs <xopt> touch < list", "\\touch <touched>", "'touch' <touched>", "t\"ou\"ch <touched>",
			"tee <new>", "cp <file> <new>", "cp -t <dir> <file>", "cp --target-directory=<dir> <file>", "mv -t<dir> <file>", "mv <file> <new>", "mkdir <new>", "ln -s f <new>",
			"sed -i s/a/b/ <new>", "sed s/a/b/ <file>", "sed -e 'w <newplain>' f", "sed -n --expression='w <newplain>' f", "sed -n 's/a/b/w <newplain>' f", "sed --file=<plain>",
			"diff --from-file=<plain> f", "sort --files0-from=list", "grep -f <file> f", "echo x", "true", "touch -r <file> <new>",
		},
		"reader": {"cat", "head -n 3", "tail -n 3", "grep -e.", "grep -h .", "sort", "nl", "cut -c1-60", "sed -n p", "awk 1", "tac", "uniq", "fold -w 200", "paste", "cat --"},
		"plain":  {"f", ".env", "../out/o", "sub/../.env", "./.env"},
		"file": {
			"<plain>", "<plain>", ".e*", ".en?", "link", "$'\\x2eenv'", ".e\"\"nv", "\"$HOME\"/h", "~/h", "\"$HOME/../out/o\"", "{f,.env}", "outlink/o", "lin*", "sub/up/.env",
			"sub/up/../out/o", "outlink/../work/.env", "../work/.env", "~+/.env", "$PWD/.env", "\"${PWD}\"/../out/o", "-- .env", "*", "../*/o",
		},
		"newplain": {"made", "sub/made", "kept", "../out/made", "sub/../kept", "dangling", "dangling", "dangling", "outlink/made"},
		"new":      {"<newplain>", "<newplain>", "\"$HOME\"/made", "~/made", "$'kep\\x74'", "sub/../../out/made", "{made,kept}", "su*/made", "\"$HOME/../work/kept\"", "link", "./kept"},
		"touched":  {"touched", "sub/../touched"},
		"redir":    {"> <new>", ">> <new>", "&> <new>", ">| <new>", "2> <new>", "<> <new>", "< <file>", "<> <file>", "< <file> > <new>", ">&2", "2>&1"},
		"wrap": {
			"env", "env -u X", "env A=1", "env -i", "timeout 5", "timeout -s KILL 5", "timeout --signal=KILL 5", "nice", "nice -n 1", "nohup", "stdbuf -o L", "command", "exec", "time", "A=1",
			"xargs", "xargs -I {}", "env -u X timeout -s KILL 5", "!",
		},
		"xopt": {"", "-n 1", "-I {}", "-t", "-0"},
		"dir":  {"sub", "..", "../out", ".", "\"$HOME\"", "outlink", "sub/up", "-"},
	}
}

// ruleSettings are the permission settings that apply to a command line.
type ruleSettings struct {
	name string
	mode protocol.PermissionMode
	// forbiddenEffect returns the forbidden effect of a command that ran without permission; "" means none.
	forbiddenEffect func(before, after map[string]string, said string) string
}

const canary = "CANARY-"

// ruleSets returns the modes that guarantee for every command line that no file outside the working directory is
// changed or shown unless a rule allows it. Deny rules are not included, because the real CLI lets some command lines
// bypass them, such as `eval` and `find -exec`, and claudeless must decide in the same way; TestDenyRules and
// tests/parity/calls test those decisions.
func ruleSets() []ruleSettings {
	return []ruleSettings{
		{"nothing is allowed", protocol.ModeDefault, func(before, after map[string]string, said string) string {
			if file := changed(before, after, ""); file != "" {
				return "changes " + file
			}
			return revealsSecret(after, said, "out", "home")
		}},
		{"edits are allowed", protocol.ModeAcceptEdits, func(before, after map[string]string, said string) string {
			if file := changed(before, after, "work/"); file != "" {
				return "changes " + file
			}
			return revealsSecret(after, said, "out", "home")
		}},
	}
}

// changed returns the path of a file that was changed, added or removed, or "" if there is none. It
// ignores paths that begin with but.
func changed(before, after map[string]string, but string) string {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if was, known := before[name]; (but == "" || !strings.HasPrefix(name, but)) && (!known || was != after[name]) {
			return name
		}
	}
	for name := range before {
		if _, there := after[name]; !there && (but == "" || !strings.HasPrefix(name, but)) {
			return name
		}
	}
	return ""
}

// revealsSecret returns how a command revealed a secret: in its output or in a file of the
// directory work; "" means not at all.
func revealsSecret(after map[string]string, said string, secrets ...string) string {
	for _, secret := range secrets {
		word := canary + secret
		if strings.Contains(said, word) {
			return "shows " + word
		}
		for _, name := range slices.Sorted(maps.Keys(after)) {
			if strings.Contains(after[name], word) && strings.HasPrefix(name, "work/") && name != "work/.env" {
				return "writes " + word + " to " + name
			}
		}
	}
	return ""
}

// privateDir is a temporary directory with files and secrets in which command lines run.
type privateDir struct{ root string }

func newPrivateDir(t *testing.T) privateDir {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := privateDir{filepath.Join(top, "a", "b", "c", "d")} // ".." leads to a directory of the test
	for name, text := range map[string]string{
		"work/f": "b\na\n", "work/.env": canary + "env\n", "work/kept": "a\n", "work/list": "touched\n", "work/sub/g": "x\n", "out/o": canary + "out\n", "home/h": canary + "home\n",
	} {
		path := filepath.Join(y.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "../out/o", "dangling": "../out/new", "outlink": "../out", "sub/up": ".."} {
		if err := os.Symlink(to, filepath.Join(y.root, "work", name)); err != nil {
			t.Fatal(err)
		}
	}
	return y
}

// readFiles returns the contents of the existing files by path.
func (y privateDir) readFiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(y.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(y.root, path)
		if err != nil || d.IsDir() && strings.Count(rel, "/") == 0 {
			return err
		}
		all[rel] = d.Type().String()
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all[rel] += string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// run runs a command line and returns its output.
func (y privateDir) run(t *testing.T, bash, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "--norc", "--noprofile", "-c", line)
	cmd.Dir = filepath.Join(y.root, "work")
	cmd.Env = []string{"HOME=" + filepath.Join(y.root, "home"), "PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.WaitDelay = time.Second
	said, _ := cmd.CombinedOutput() // the comparison shows what a failed command has changed
	return string(said)
}

// expand generates one line of the grammar.
func expand(r *rand.Rand) string {
	words := ruleGrammar()
	var say func(key string, depth int) string
	say = func(key string, depth int) string {
		choice := words[key][r.IntN(len(words[key]))]
		var b strings.Builder
		for {
			before, rest, found := strings.Cut(choice, "<")
			b.WriteString(before)
			if !found {
				return b.String()
			}
			name, after, closed := strings.Cut(rest, ">")
			if !closed || words[name] == nil || depth == 0 { // a redirection
				b.WriteByte('<')
				choice = rest
				continue
			}
			b.WriteString(say(name, depth-1))
			choice = after
		}
	}
	return say("line", 8)
}

// tryRules runs a command line that some rules and modes allow without a question, and checks that it did nothing that
// they must prevent. The decision is made in one directory, and the command runs in copies of it.
func tryRules(t *testing.T, bash, line string, judged privateDir) (ran int) {
	t.Helper()
	input, err := protocol.Marshal(map[string]string{"command": line})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(line, "xargs") { // the real CLI allows `echo ../x | xargs head` (observed with 2.1.330)
		return 0
	}
	for _, set := range ruleSets() {
		p, err := permission.New(permission.Options{
			Mode: set.mode, CWD: filepath.Join(judged.root, "work"), Home: filepath.Join(judged.root, "home"), FileSystem: diskFS{},
		})
		if err != nil {
			t.Fatal(err)
		}
		if v := p.Decide(protocol.ToolUse{Name: "Bash", Input: input}); v.Behavior != permission.Allow {
			continue
		}
		ran++
		y := newPrivateDir(t)
		before := y.readFiles(t)
		said := y.run(t, bash, line)
		if what := set.forbiddenEffect(before, y.readFiles(t), said); what != "" {
			t.Errorf("%s: %q may run unasked and %s", set.name, line, what)
		}
	}
	return ran
}

// lineOf returns the line of the grammar that a number encodes.
func lineOf(seed uint64) string { return expand(rand.New(rand.NewPCG(seed, 29))) }

// TestRulesHoldForASample runs the allowed command lines of a fixed sample and checks their effects.
func TestRulesHoldForASample(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("CI needs bash:", err)
	}
	if err != nil {
		t.Skip("there is no bash")
	}
	const lines, parts = 6000, 4
	for part := range uint64(parts) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			judged, ran := newPrivateDir(t), 0
			for seed := part; seed < lines; seed += parts {
				ran += tryRules(t, bash, lineOf(seed), judged)
			}
			if ran < lines/parts/50 {
				t.Errorf("%d runs of %d lines: the sample shows nothing", ran, lines/parts)
			}
			t.Logf("%d runs", ran)
		})
	}
}

// FuzzRules does the same with random command lines.
func FuzzRules(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		f.Skip("there is no bash")
	}
	f.Add(uint64(500))
	f.Fuzz(func(t *testing.T, seed uint64) { tryRules(t, bash, lineOf(seed), newPrivateDir(t)) })
}
