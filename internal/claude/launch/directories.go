package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
)

// Abs makes a path of the command line, the environment or a file absolute.
func (p Directories) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cmp.Or(p.Start, p.CWD), path)
}

// ResolveDir makes the path of a directory absolute and reports whether the directory exists.
func (p Directories) ResolveDir(path string) (string, bool) {
	if rest, found := strings.CutPrefix(path+"/", "~/"); found {
		path = filepath.Join(p.Home, rest)
	}
	abs := p.Abs(path)
	info, err := os.Stat(abs)
	return abs, err == nil && info.IsDir()
}

// locate finds the working and the state directory (design: state directory).
func (r *resolver) locate() error {
	cwd, err := r.flags.Dir(r.sys)
	if err != nil {
		return err
	}
	r.plan.CWD, r.plan.Start = cmp.Or(r.flags.Moved, cwd), cwd
	r.plan.UID, r.plan.PID, r.plan.Started = r.sys.UID, r.sys.PID, r.sys.Now()
	r.plan.AsClaude, r.plan.Stdout, r.plan.Stderr, r.plan.Progress = r.sys.CalledAsClaude(), r.sys.Stdout, r.sys.Stderr, r.sys.Progress()
	if exe, err := r.sys.Executable(); err == nil {
		r.plan.Executable = exe
	}
	if home := r.sys.Getenv("HOME"); home != "" {
		r.plan.State = filepath.Join(home, ".claudeless")
	}
	for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := r.sys.Getenv(name); dir != "" {
			r.plan.State = r.plan.Abs(dir)
			break
		}
	}
	r.environmentDirs()
	return nil
}

// environmentDirs resolves the directories that the environment of settings can change.
func (r *resolver) environmentDirs() {
	r.plan.Home = r.sys.Getenv("HOME")
	r.plan.Temp = cmp.Or(r.sys.Getenv("TMPDIR"), "/tmp")
	if !r.flags.NoSessionPersistence {
		r.plan.TaskTemp = cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir())
	}
	r.plan.Store = r.mcpStore()
}

// mcpStore returns the place where the command mcp stores servers: next to the settings if a variable moves those,
// else the place of the real CLI (spec: cli-observed 6).
func (r *resolver) mcpStore() mcpcmd.Store {
	const file = ".claude.json"
	home := r.plan.Home
	store := mcpcmd.Store{CWD: r.plan.CWD}
	switch {
	case r.plan.State != "" && r.plan.State != filepath.Join(home, ".claudeless"):
		store.File = filepath.Join(r.plan.State, file)
	case home != "":
		store.File = filepath.Join(home, file)
	}
	return store
}
