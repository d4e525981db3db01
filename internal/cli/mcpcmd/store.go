package mcpcmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/mcp"
)

// The scopes, lowest precedence first.
const (
	scopeUser    = "user"
	scopeProject = "project"
	scopeLocal   = "local"
)

const (
	serversKey  = "mcpServers"
	projectsKey = "projects"
)

// Store locates the configuration of servers (spec: cli-observed 6). User scope is mcpServers of File, local scope is
// projects[CWD].mcpServers of File, project scope is mcpServers of .mcp.json in CWD.
type Store struct {
	File string // .claude.json; empty means none
	CWD  string // absolute
}

// Scopes returns the entries of user and local scope, for mcp.LoadConfigs, which reads .mcp.json itself. A missing
// file has no entries; an unreadable one is an error.
func (s Store) Scopes() ([]mcp.Scope, error) {
	if s.File == "" {
		return nil, nil
	}
	doc, err := readObject(s.File)
	if err != nil {
		return nil, err
	}
	var scopes []mcp.Scope
	for _, scope := range []string{scopeUser, scopeLocal} {
		if raw := valueAt(doc, s.scopeKeys(scope)...); raw != nil {
			scopes = append(scopes, mcp.Scope{Source: scope, Servers: raw})
		}
	}
	return scopes, nil
}

// Approves reports whether the user has approved a server of .mcp.json.
func (s Store) Approves(name string) bool {
	return slices.Contains(s.projectNames("enabledMcpjsonServers"), name)
}

// Disabled returns the servers that the user has disabled in this project.
func (s Store) Disabled() []string { return s.projectNames("disabledMcpServers") }

// projectNames returns a list of names that File holds for the project; empty if it is not a list.
func (s Store) projectNames(key string) (names []string) {
	if s.File == "" {
		return nil
	}
	doc, err := readObject(s.File)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(valueAt(doc, projectsKey, s.CWD, key), &names)
	return names
}

func (s Store) scopePath(scope string) string {
	if scope == scopeProject {
		return filepath.Join(s.CWD, ".mcp.json")
	}
	return s.File
}

func (s Store) scopeKeys(scope string) []string {
	if scope == scopeLocal {
		return []string{projectsKey, s.CWD, serversKey}
	}
	return []string{serversKey}
}

func (s Store) hasServer(scope, name string) (bool, error) {
	if s.scopePath(scope) == "" {
		return false, nil
	}
	doc, err := readObject(s.scopePath(scope))
	if err != nil {
		return false, err
	}
	return valueAt(doc, append(s.scopeKeys(scope), name)...) != nil, nil
}

// writeServer writes an entry; nil removes it.
func (s Store) writeServer(scope, name string, entry json.RawMessage) error {
	path := s.scopePath(scope)
	if path == "" {
		return errors.New("cannot save the server: HOME is not set")
	}
	doc, err := readObject(path)
	if err != nil {
		return err
	}
	doc, err = setValue(doc, append(s.scopeKeys(scope), name), entry)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeObject(path, doc)
}

// readObject reads a JSON file that holds an object; a missing or empty file is an empty object.
func readObject(path string) (object, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(data) == 0 {
		return object{}, nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := parseObject(data)
	if err != nil {
		return nil, fmt.Errorf("%s is not a JSON object: %w", path, err)
	}
	return doc, nil
}

// writeObject replaces a file atomically and keeps its mode.
func writeObject(path string, doc object) error {
	mode := fs.FileMode(0o600)
	if filepath.Base(path) == ".mcp.json" {
		mode = 0o644
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	text := encodeIndented(doc)
	if filepath.Base(path) == ".mcp.json" {
		text = bytes.TrimRight(text, "\n") // the real CLI writes it without a newline
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
