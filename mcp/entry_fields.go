package mcp

import (
	_ "embed" // for entry.json
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/claudeless/claudeless/internal/base/plainjson"
)

//go:embed entry.json
var entrySchemaJSON string

// entrySchemas are the schemas of the members that belong together, such as those of a transport.
var entrySchemas = sync.OnceValue(func() plainjson.SchemaLibrary { return plainjson.MustParseSchemas(entrySchemaJSON) })

// configEntryReader reads the members of one entry of a configuration and collects all problems in them, not only the first.
type configEntryReader struct {
	members     map[string]json.RawMessage
	Problems    []string // one line each
	memberNames []string // members that were read, if the entry has them
}

func readEntry(entry json.RawMessage) *configEntryReader {
	f := &configEntryReader{}
	if got := plainjson.TypeOf(entry); got != "object" {
		f.AddProblem("expected object, received %s", got)
		return f
	}
	if err := json.Unmarshal(entry, &f.members); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
	return f
}

// Has reports whether the member exists, even with the value null.
func (f *configEntryReader) Has(name string) bool {
	_, has := f.members[name]
	return has
}

func (f *configEntryReader) AddProblem(format string, args ...any) {
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

// Decode decodes the members of a schema into the struct that target points to. If their types are wrong, it records problems and
// does not change the struct.
func (f *configEntryReader) Decode(schemaName string, target any) {
	schema, members := entrySchemas()[schemaName], map[string]json.RawMessage{}
	for _, p := range schema.Properties {
		f.memberNames = append(f.memberNames, p.Name)
		if f.Has(p.Name) {
			members[p.Name] = f.members[p.Name]
		}
	}
	raw := json.RawMessage(plainjson.MarshalString(members))
	issues := schema.Issues(raw)
	for _, i := range issues {
		f.AddProblem("%s: %s", i.DottedPath(), strings.TrimPrefix(i.Message, "Invalid input: "))
	}
	if issues != nil {
		return
	}
	if err := json.Unmarshal(raw, target); err != nil {
		f.Problems = append(f.Problems, err.Error())
	}
}

// UnreadMembers returns the names of the members that were not read.
func (f *configEntryReader) UnreadMembers() []string {
	unread := slices.Sorted(maps.Keys(f.members))
	return slices.DeleteFunc(unread, func(name string) bool { return slices.Contains(f.memberNames, name) })
}

// variablePattern matches ${NAME} and ${NAME:-default}, and also ${env:NAME}, which editors use.
var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{((?:env:)?[A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`) })

// configVariableValues maps names of variables to their values. Strings in an entry refer to them, as in ${HOME}.
type configVariableValues map[string]string

// newVariables returns the environment variables ("K=V") and those that editors define, such as workspaceFolder (cwd).
func newVariables(environ []string, cwd string) configVariableValues {
	vars := configVariableValues{"workspaceFolder": cwd, "workspaceFolderBasename": filepath.Base(cwd)}
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

// Expand replaces variables by their values. Unset variables without default stay in the text and are listed in unset.
func (vars configVariableValues) Expand(text string) (expanded string, unset []string) {
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
