package mcp

import (
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// variablePattern matches ${NAME}, ${NAME:-default} and the ${env:NAME} of editors.
var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })

// variables are the variables that values of an entry may refer to, by name.
type variables map[string]string

// newVariables returns the variables of an environment ("K=V"); workspaceFolder is cwd.
func newVariables(environ []string, cwd string) variables {
	vars := variables{"workspaceFolder": cwd, "workspaceFolderBasename": filepath.Base(cwd)}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			vars[k] = v
		}
	}
	if home, ok := vars["HOME"]; ok {
		vars["userHome"] = home
	}
	return vars
}

// Expand replaces variables by their values. A variable that is unset and has no default is left in the text and
// reported in unset.
func (vars variables) Expand(text string) (expanded string, unset []string) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	expanded = variablePattern().ReplaceAllStringFunc(text, func(whole string) string {
		parts := variablePattern().FindStringSubmatch(whole)
		name := strings.TrimPrefix(parts[1], "env:")
		if v, ok := vars[name]; ok {
			return v
		}
		if parts[2] != "" {
			return parts[2][len(":-"):]
		}
		unset = append(unset, name)
		return whole
	})
	return expanded, unset
}
