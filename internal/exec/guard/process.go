package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeless/claudeless/internal/record/redact"
)

// process is one of the system, by its id; 0 = none. What is asked of it is
// found in /proc, and empty where there is none.
type process int

func (p process) file(name string) string { return fmt.Sprintf("/proc/%d/%s", int(p), name) }

// Argv is the command line of a process; nil = it is not to be seen.
func Argv(pid int) []string {
	line, err := os.ReadFile(process(pid).file("cmdline"))
	if err != nil || len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}

func (p process) argv() []string { return Argv(int(p)) }

// parent is 0 where it is not known.
func (p process) parent() process {
	status, _ := os.ReadFile(p.file("status")) // empty where there is none
	m := regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`).FindSubmatch(status)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1])) // they are digits
	return process(n)
}

// generations is how far back a process is looked into.
const generations = 12

// lines are a process and its ancestors up to this program, itself first.
func (p process) lines() []process {
	var list []process
	for self := process(os.Getpid()); p > 1 && p != self && len(list) < generations; p = p.parent() {
		list = append(list, p)
	}
	return list
}

// String names a process by its command line, and by those who started it.
func (p process) String() string {
	var b strings.Builder
	for i, q := range p.lines() {
		if i == 0 {
			b.WriteString(shown(q.argv()))
			continue
		}
		fmt.Fprintf(&b, ", started by process %d (%s)", int(q), shown(q.argv()))
	}
	if b.Len() == 0 {
		return fmt.Sprintf("process %d", int(p))
	}
	return b.String()
}

// shown is a command line without the secrets in it, on one line of bounded length.
func shown(argv []string) string {
	const most = 200
	argv = redact.New(redact.Options{}).Args(argv)
	line := strings.Join(strings.Fields(strings.Join(argv, " ")), " ")
	if r := []rune(line); len(r) > most {
		return string(r[:most]) + "…"
	}
	return line
}

// claude tells whether a process, or one that it descends from, is a claude that
// is not ours: by its name, or by its place.
func (p process) claude(own Own) bool {
	return slices.ContainsFunc(p.lines(), func(q process) bool {
		argv := q.argv()
		exe, _ := os.Readlink(q.file("exe")) // what is gone is not looked at
		for i, word := range append(argv[:min(len(argv), 3):min(len(argv), 3)], exe) {
			named := i < 2 && filepath.Base(word) == "claude" || IsReal(word)
			if named && !own.has(word) && !own.has(exe) {
				return true
			}
		}
		return false
	})
}

// Descendants are the processes that pid has started, and those that they have,
// as far as they are its children still; see [Adopt]. Where the system does not
// tell, there are none.
func Descendants(pid int) []int {
	var all []int
	for _, child := range children(pid) {
		all = append(append(all, child), Descendants(child)...)
	}
	return all
}

func children(pid int) []int {
	var all []int
	tasks, _ := os.ReadDir(process(pid).file("task")) // it may have ended
	for _, task := range tasks {
		list, _ := os.ReadFile(process(pid).file("task/" + task.Name() + "/children")) // so may the thread
		for word := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// Ended tells whether a process is gone, or only waits to be waited for.
func Ended(pid int) bool {
	stat, err := os.ReadFile(process(pid).file("stat"))
	if err != nil {
		return true
	}
	_, state := cutLast(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// Marked are the processes that have a variable in their environment, K=V.
func Marked(variable string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil && pid != os.Getpid() && slices.Contains(Environ(pid), variable) {
			all = append(all, pid)
		}
	}
	return all
}

// Environ is what the environment of a process was when it began; nil = it is not
// to be seen.
func Environ(pid int) []string {
	environ, err := os.ReadFile(process(pid).file("environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(environ), "\x00")
}

// holder finds the process that has a socket open; 0 = it is not to be found.
func holder(inode string) process {
	if inode == "" {
		return 0
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // it is a number
			return process(pid)
		}
	}
	return 0
}

// inodeOf is the socket that has a local port, in a table of connections; empty =
// there is none.
func inodeOf(table string, port int) string {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 9 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			return f[9]
		}
	}
	return ""
}

// cutLast cuts at the last separator; without one all is before it.
func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return s, ""
}
