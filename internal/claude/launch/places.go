package launch

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"github.com/claudeless/claudeless/internal/cli/mcpcmd"
)

// Abs makes a path absolute.
func (p Directories) Abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(p.CWD, path)
}

// Directory makes the path of a directory absolute and tells whether there is one.
func (p Directories) Directory(path string) (string, bool) {
	if rest, found := strings.CutPrefix(path+"/", "~/"); found {
		path = filepath.Join(p.Home, rest)
	}
	abs := p.Abs(path)
	info, err := os.Stat(abs)
	return abs, err == nil && info.IsDir()
}

// locate finds the working and the state directory (design: state directory).
func (r *resolver) locate() error {
	cwd, err := r.f.Dir(r.sys)
	if err != nil {
		return err
	}
	r.p.CWD, r.p.UID, r.p.PID, r.p.Started = cwd, r.sys.UID, r.sys.PID, r.sys.Now()
	r.p.AsClaude, r.p.Stdout, r.p.Stderr, r.p.Progress = r.sys.AsClaude(), r.sys.Stdout, r.sys.Stderr, r.sys.Progress()
	if exe, err := r.sys.Executable(); err == nil {
		r.p.Executable = exe
	}
	if home := r.sys.Getenv("HOME"); home != "" {
		r.p.State = filepath.Join(home, ".claudeless")
	}
	for _, name := range []string{"CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR", "CLAUDE_CONFIG_DIR"} {
		if dir := r.sys.Getenv(name); dir != "" {
			r.p.State = r.p.Abs(dir)
			break
		}
	}
	r.around()
	return nil
}

// around is what of the places settings may change by their environment.
func (r *resolver) around() {
	r.p.Home = r.sys.Getenv("HOME")
	r.p.Temp = cmp.Or(r.sys.Getenv("TMPDIR"), "/tmp")
	if !r.f.NoSessionPersistence {
		r.p.TaskTemp = cmp.Or(r.sys.Getenv("CLAUDE_CODE_TMPDIR"), r.sys.Getenv("TMPDIR"), os.TempDir())
	}
	r.p.Store = r.store()
}

// store is where the command mcp keeps servers: beside the settings if a variable says where those are, else where the
// real CLI has them (spec: cli-observed 6).
func (r *resolver) store() mcpcmd.Store {
	const file = ".claude.json"
	home := r.p.Home
	store := mcpcmd.Store{CWD: r.p.CWD}
	switch {
	case r.p.State != "" && r.p.State != filepath.Join(home, ".claudeless"):
		store.File = filepath.Join(r.p.State, file)
	case home != "":
		store.File = filepath.Join(home, file)
	}
	return store
}
