package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudeless/claudeless/fixtures/clone"
	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/internal/importer/session"
)

// checkRawTarget refuses to write unredacted output where it could be committed.
func checkRawTarget(o Options) error {
	if o.Force || !o.Raw || o.Out == "" {
		return nil
	}
	dir, err := filepath.Abs(o.Out)
	if err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return fmt.Errorf("refusing to write unredacted output (--raw) into the git work tree %s; use --force to write it anyway", dir)
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return nil
	}
}

func (w *scenarioWriter) writeFixtures(sessions []*session.Session) error {
	servers := map[string]*clone.RecordedServer{}
	server := func(name string) *clone.RecordedServer {
		if servers[name] == nil {
			servers[name] = &clone.RecordedServer{Name: name}
		}
		return servers[name]
	}
	called := map[string]bool{}
	for _, s := range sessions {
		for _, c := range s.Calls() {
			name, tool, ok := session.SplitToolName(c.Tool)
			if !ok {
				continue
			}
			r := server(name)
			key := c.Tool + "\x00" + string(plainjson.Compact(c.Input))
			if c.Result == nil || c.Result.Denied || called[key] || w.plans.differing[key] {
				r.Tools = append(r.Tools, tool)
				continue
			}
			called[key] = true
			result, err := mcpResult(c.Result)
			if err != nil {
				return err
			}
			r.Calls = append(r.Calls, clone.RecordedCall{Tool: tool, Args: json.RawMessage(plainText(string(c.Input))), Result: result})
		}
		for _, full := range s.Tools {
			if name, tool, ok := session.SplitToolName(full); ok && servers[name] != nil {
				server(name).Tools = append(server(name).Tools, tool)
			}
		}
	}
	return w.writeConfig(servers)
}

func (w *scenarioWriter) writeConfig(servers map[string]*clone.RecordedServer) error {
	type entry struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	config := struct {
		Servers map[string]entry `json:"mcpServers"`
	}{map[string]entry{}}
	names := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		data, err := clone.WriteFixture(*servers[name])
		if err != nil {
			return fmt.Errorf("the fixture of %q: %w", name, err)
		}
		file := "fixtures/" + uniqueName(fileName(name), names) + ".toml"
		w.files.WriteFile(file, data)
		config.Servers[name] = entry{"${CLAUDELESS_BIN}", []string{"fixture", "serve", file}}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	if err := enc.Encode(config); err != nil {
		return err
	}
	w.files.WriteFile("mcp.json", b.Bytes())
	return nil
}

// maxFileNameBytes leaves room for a number and an extension in the 255 bytes of a name.
const maxFileNameBytes = 200

// uniqueName returns name, with a number appended if used contains it, and adds the result to used. It ignores
// case, as some file systems do.
func uniqueName(name string, used map[string]bool) string {
	unique := name
	for n := 2; used[strings.ToLower(unique)]; n++ {
		unique = fmt.Sprintf("%s-%d", name, n)
	}
	used[strings.ToLower(unique)] = true
	return unique
}

func fileName(server string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, strings.TrimLeft(server, "."))
	return cmp.Or(name[:min(len(name), maxFileNameBytes)], "server")
}

// mcpResult returns a result as its server sent it, reconstructed if necessary.
func mcpResult(r *session.Result) (json.RawMessage, error) {
	if r.Raw != nil {
		return json.RawMessage(plainText(string(r.Raw))), nil
	}
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	said, _, _ := strings.Cut(r.Text, "\n\nThis tool's input schema was not in your prompt") // added by the CLI
	return json.Marshal(struct {
		Content []text `json:"content"`
		IsError bool   `json:"isError,omitempty"`
	}{[]text{{"text", plainText(said)}}, r.IsError})
}
