package catalog

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// MemoryOptions says where files of instructions are looked for.
type MemoryOptions struct {
	UserDir string // the state directory; empty = it does not count
	CWD     string // absolute
	Home    string // what ~ is; empty = it is nothing
	// Project and Local say whether those of the project count, and those of the
	// user for the project.
	Project, Local bool
}

// Memory is one file of instructions.
type Memory struct {
	Path   string
	Type   string // User, Project, Local
	Parent string // that imports it; empty = it was looked for
	Text   string // without front matter and comments
	// Globs are the paths that it is about; nil = it always counts.
	Globs []string
}

// Heading is what stands before a file's text where the model reads it.
func (m Memory) Heading() string {
	about := map[string]string{
		"User":    "user's private global instructions for all projects",
		"Project": "project instructions, checked into the codebase",
		"Local":   "user's private project instructions, not checked in",
	}
	return "Contents of " + m.Path + " (" + about[m.Type] + "):"
}

// Memories finds the files of instructions that a session begins with: those of
// the user, then from the root down to the working directory those of the
// project, each followed by what it imports.
func Memories(o MemoryOptions) []Memory {
	r := &memoryReader{home: o.Home, seen: map[string]bool{}}
	if o.UserDir != "" {
		r.read(filepath.Join(o.UserDir, "CLAUDE.md"), "User", "", 0)
		r.rules(filepath.Join(o.UserDir, "rules"), "User")
	}
	for _, dir := range downTo(o.CWD) {
		if o.Project {
			r.read(filepath.Join(dir, "CLAUDE.md"), "Project", "", 0)
			r.read(filepath.Join(dir, ".claude", "CLAUDE.md"), "Project", "", 0)
			r.rules(filepath.Join(dir, ".claude", "rules"), "Project")
		}
		if o.Local {
			r.read(filepath.Join(dir, "CLAUDE.local.md"), "Local", "", 0)
		}
	}
	return r.found
}

// downTo lists the directories from the root to dir.
func downTo(dir string) []string {
	var dirs []string
	for {
		dirs = append(dirs, dir)
		up := filepath.Dir(dir)
		if up == dir {
			slices.Reverse(dirs)
			return dirs
		}
		dir = up
	}
}

const (
	maxImports = 5       // files between the first and the last
	maxMemory  = 1 << 20 // bytes of a file; what is longer is left out
)

// memoryReader reads files once, in the order in which they count.
type memoryReader struct {
	home  string
	seen  map[string]bool
	found []Memory
}

func (r *memoryReader) read(path, kind, parent string, depth int) {
	if r.seen[path] || depth > maxImports {
		return
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxMemory {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return
	}
	r.seen[path] = true
	d := parseDocument(data)
	text := strings.TrimSpace(comment().ReplaceAllString(d.body, ""))
	m := Memory{Path: path, Type: kind, Parent: parent, Text: text, Globs: d.list("paths")}
	if parent == "" && len(m.Globs) > 0 {
		return // it counts once such a file is read
	}
	r.found = append(r.found, m)
	for _, name := range imports(text) {
		if target := r.resolve(name, filepath.Dir(path)); target != "" {
			r.read(target, kind, path, depth+1)
		}
	}
}

// rules reads the Markdown files below a directory, in order.
func (r *memoryReader) rules(dir, kind string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			r.read(path, kind, "", 0)
		}
		return nil // what cannot be read is left out
	})
}

// resolve is the file that an import names; empty = none.
func (r *memoryReader) resolve(name, dir string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if r.home == "" {
			return ""
		}
		return filepath.Join(r.home, rest)
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

var (
	comment = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)(?:^|\n)[ \t]*<!--.*?-->[ \t]*`) })
	code    = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?s)(?:^|\n)[ \t]*```.*?(?:\n[ \t]*```|$)|`[^`\n]*`")
	})
	imported = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|\s)@(\S+)`) })
)

// imports are the files that a text names with @, outside of code.
func imports(text string) []string {
	var names []string
	for _, m := range imported().FindAllStringSubmatch(code().ReplaceAllString(text, ""), -1) {
		names = append(names, strings.TrimRight(m[1], ".,;:!?)"))
	}
	return names
}
