package mcpcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/claudeless/claudeless/internal/base/plainjson"
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

// Scopes returns the entries of user and local scope. It is for mcp.LoadConfigs, which reads the entries of project
// scope itself. A missing file has no entries; a file that cannot be read is an error.
func (s Store) Scopes() ([]mcp.Scope, error) {
	if s.File == "" {
		return nil, nil
	}
	doc, err := plainjson.ReadFile(s.File)
	if err != nil {
		return nil, err
	}
	var scopes []mcp.Scope
	for _, scope := range []string{scopeUser, scopeLocal} {
		if raw := doc.At(s.scopeServersKeyPath(scope)...); raw != nil {
			scopes = append(scopes, mcp.Scope{Source: scope, Servers: raw})
		}
	}
	return scopes, nil
}

// Approves reports whether the user has approved a server of .mcp.json.
func (s Store) Approves(name string) bool {
	return slices.Contains(s.projectServerNames("enabledMcpjsonServers"), name)
}

// DisabledServers returns the servers that the user has disabled in this project.
func (s Store) DisabledServers() []string { return s.projectServerNames("disabledMcpServers") }

// projectServerNames returns the names that File lists for the project under a key. It returns nil if File has no
// such list.
func (s Store) projectServerNames(key string) (names []string) {
	if s.File == "" {
		return nil
	}
	doc, err := plainjson.ReadFile(s.File)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(doc.At(projectsKey, s.CWD, key), &names)
	return names
}

func (s Store) scopePath(scope string) string {
	if scope == scopeProject {
		return filepath.Join(s.CWD, ".mcp.json")
	}
	return s.File
}

func (s Store) scopeServersKeyPath(scope string) []string {
	if scope == scopeLocal {
		return []string{projectsKey, s.CWD, serversKey}
	}
	return []string{serversKey}
}

func (s Store) hasServer(scope, name string) (bool, error) {
	if s.scopePath(scope) == "" {
		return false, nil
	}
	doc, err := plainjson.ReadFile(s.scopePath(scope))
	if err != nil {
		return false, err
	}
	return doc.At(append(s.scopeServersKeyPath(scope), name)...) != nil, nil
}

// writeServer writes an entry; nil removes it.
func (s Store) writeServer(scope, name string, entry json.RawMessage) error {
	path := s.scopePath(scope)
	if path == "" {
		return errors.New("cannot save the configuration of MCP servers: HOME is not set (set HOME or CLAUDELESS_CONFIG_DIR)")
	}
	doc, err := plainjson.ReadFile(path)
	if err != nil {
		return err
	}
	if doc, err = doc.SetAt(append(s.scopeServersKeyPath(scope), name), entry); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if scope == scopeProject {
		return doc.WriteFile(path, "", 0o644) // the real CLI writes the file without a final newline
	}
	return doc.WriteFile(path, "\n", 0o600)
}
