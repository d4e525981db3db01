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

// process is a process id; 0 means none. Its methods read /proc; if that is impossible, they return empty values.
type process int

func (p process) procFile(name string) string { return fmt.Sprintf("/proc/%d/%s", int(p), name) }

// Argv returns the command line of a process; nil means unknown.
func Argv(pid int) []string {
	line, _ := os.ReadFile(process(pid).procFile("cmdline"))
	if len(line) == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}

func (p process) argv() []string { return Argv(int(p)) }

// parent returns the parent process; 0 means unknown.
func (p process) parent() process {
	status, _ := os.ReadFile(p.procFile("status")) // empty if the file is missing
	m := regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`).FindSubmatch(status)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(string(m[1])) // the pattern matches digits only
	return process(n)
}

const maxAncestors = 12

// lineage returns a process and then its ancestors, up to this program.
func (p process) lineage() []process {
	var list []process
	for self := process(os.Getpid()); p > 1 && p != self && len(list) < maxAncestors; p = p.parent() {
		list = append(list, p)
	}
	return list
}

// String describes a process by its own command line and the command lines of its ancestors.
func (p process) String() string {
	var b strings.Builder
	for i, q := range p.lineage() {
		if i == 0 {
			b.WriteString(redactedCommandLine(q.argv()))
			continue
		}
		fmt.Fprintf(&b, ", started by process %d (%s)", int(q), redactedCommandLine(q.argv()))
	}
	if b.Len() == 0 {
		return fmt.Sprintf("process %d", int(p))
	}
	return b.String()
}

// redactedCommandLine returns a command line without secrets, on one line of limited length.
func redactedCommandLine(argv []string) string {
	const most = 200
	argv = redact.New(redact.Options{}).Args(argv)
	line := strings.Join(strings.Fields(strings.Join(argv, " ")), " ")
	if r := []rune(line); len(r) > most {
		return string(r[:most]) + "…"
	}
	return line
}

// isOrDescendsFromRealClaude reports whether a process or one of its ancestors is a real claude, judged by name or
// path. The files in ownFiles do not count as a real claude.
func (p process) isOrDescendsFromRealClaude(ownFiles ClaudelessFiles) bool {
	return slices.ContainsFunc(p.lineage(), func(q process) bool {
		argv := q.argv()
		exe, _ := os.Readlink(q.procFile("exe")) // empty if the process has exited
		for i, word := range append(argv[:min(len(argv), 3):min(len(argv), 3)], exe) {
			if named := i < 2 && filepath.Base(word) == "claude" || IsInRealCLIInstallation(word); named && !ownFiles.isSimulatorOrShim(word) && !ownFiles.isSimulatorOrShim(exe) {
				return true
			}
		}
		return false
	})
}

// Descendants returns the processes that pid has started, directly or indirectly. Orphans are included only after
// [AdoptOrphans]. On systems without /proc it returns none.
func Descendants(pid int) []int {
	var all []int
	for _, child := range childrenOf(pid) {
		all = append(append(all, child), Descendants(child)...)
	}
	return all
}

func childrenOf(pid int) []int {
	var all []int
	tasks, _ := os.ReadDir(process(pid).procFile("task")) // empty if the process has exited
	for _, task := range tasks {
		list, _ := os.ReadFile(process(pid).procFile("task/" + task.Name() + "/children")) // empty if the thread has exited
		for word := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// HasEnded reports whether a process does not exist or is a zombie.
func HasEnded(pid int) bool {
	stat, err := os.ReadFile(process(pid).procFile("stat"))
	if err != nil {
		return true
	}
	_, state := cutAtLast(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// ProcessesWithVariable returns the processes that have keyValue, a variable K=V, in their environment.
func ProcessesWithVariable(keyValue string) []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var all []int
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil && pid != os.Getpid() && slices.Contains(Environ(pid), keyValue) {
			all = append(all, pid)
		}
	}
	return all
}

// Environ returns the environment with which a process started; nil means unknown.
func Environ(pid int) []string {
	environ, err := os.ReadFile(process(pid).procFile("environ"))
	if err != nil {
		return nil
	}
	return strings.Split(string(environ), "\x00")
}

// socketHolder returns the process that holds the socket with this inode; 0 means not found.
func socketHolder(inode string) process {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, _ := os.Readlink(link); to == "socket:["+inode+"]" {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2]) // the pattern matches digits only
			return process(pid)
		}
	}
	return 0
}

// socketInode returns the inode of the socket with this local port in a connection table; empty means not found. It
// skips closed connections that wait for late packets: they have inode 0, and other sockets may use their port.
func socketInode(table string, port int) string {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 9 && f[9] != "0" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			return f[9]
		}
	}
	return ""
}

// cutAtLast cuts s at the last separator. Without a separator, before is all of s.
func cutAtLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return s, ""
}
