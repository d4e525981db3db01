package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeless/claudeless/internal/base/plainjson"
	"github.com/claudeless/claudeless/simulator/protocol"
)

// PluginParts holds a plugin's hooks and MCP servers; the catalog itself holds its commands, skills and agents. Hooks
// and Servers contain Dir in place of [pluginRootVariable].
type PluginParts struct {
	Name, Dir string
	ID        string          // name@marketplace; "inline" instead of the marketplace for --plugin-dir
	Hooks     json.RawMessage // an object, keyed by event, as in settings files; nil means none
	Servers   json.RawMessage // an object, keyed by name, as in .mcp.json; nil means none
}

// pluginRootVariable is the placeholder for a plugin's directory in its files.
const pluginRootVariable = "${CLAUDE_PLUGIN_ROOT}"

const pluginManifestFile = ".claude-plugin/plugin.json"

// pluginManifest is .claude-plugin/plugin.json. Hooks and servers are objects, or names of files that contain them.
type pluginManifest struct {
	Name    string          `json:"name"`
	Version string          `json:"version"`
	Hooks   json.RawMessage `json:"hooks"`
	Servers json.RawMessage `json:"mcpServers"`
}

// AddPlugins loads the plugins in dirs that are not loaded yet. It returns their hooks and MCP servers, which the catalog does not use.
func (c *Catalog) AddPlugins(open func(dir string) fs.FS, dirs ...string) []PluginParts {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &loader{catalog: c}
	for _, dir := range dirs {
		if !slices.ContainsFunc(c.plugins, func(p protocol.Plugin) bool { return IsPluginIn(p.Path, dir) }) {
			l.readPluginOrCollection(open(dir), dir, 0)
		}
	}
	l.commands = c.commands
	l.setSortedUniqueCommands()
	return l.parts
}

// HasPluginInEach reports whether a plugin has been loaded from each of dirs.
func (c *Catalog) HasPluginInEach(dirs ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(dirs, func(dir string) bool {
		return !slices.ContainsFunc(c.plugins, func(p protocol.Plugin) bool { return IsPluginIn(p.Path, dir) })
	})
}

// IsPluginIn reports whether the plugin's directory is dir or a direct subdirectory of dir.
func IsPluginIn(plugin, dir string) bool { return plugin == dir || filepath.Dir(plugin) == dir }

// InitialPluginParts returns the parts of the plugins that [New] found. The parts of later plugins are returned by [Catalog.AddPlugins].
func (c *Catalog) InitialPluginParts() []PluginParts { return c.pluginParts }

// readPluginOrCollection reads a plugin or a directory of plugins, which the option --plugin-dir names. flagIndex is the
// position of the option among all --plugin-dir options (observed with 2.1.330).
func (l *loader) readPluginOrCollection(tree fs.FS, dir string, flagIndex int) {
	inline := "inline[" + strconv.Itoa(flagIndex) + "]"
	if !mayBePluginCollection(tree) {
		l.readPlugin(tree, dir, inline)
		return
	}
	entries, _ := fs.ReadDir(tree, ".") // cannot fail, because mayBePluginCollection has accessed the directory
	for _, e := range entries {
		if sub, err := fs.Sub(tree, e.Name()); err == nil && fileExists(sub, pluginManifestFile) {
			l.readPlugin(sub, filepath.Join(dir, e.Name()), inline)
		}
	}
}

// KnownMarketplacesFile is the file in the directory [Options.Marketplaces] that lists the known marketplaces by name.
// MarketplaceManifestFile lists the plugins of a marketplace; it is relative to the directory of the marketplace.
const (
	KnownMarketplacesFile   = "known_marketplaces.json"
	MarketplaceManifestFile = ".claude-plugin/marketplace.json"
)

// MarketplaceSource says where a marketplace comes from.
type MarketplaceSource struct {
	Source string `json:"source"` // "directory"
	Path   string `json:"path"`
}

// KnownMarketplace is the entry of a marketplace in [KnownMarketplacesFile].
type KnownMarketplace struct {
	Source      MarketplaceSource `json:"source"`
	Dir         string            `json:"installLocation"`
	LastUpdated string            `json:"lastUpdated"`
}

// NewKnownMarketplace returns the [KnownMarketplace] of a directory as JSON.
func NewKnownMarketplace(dir string, updated time.Time) json.RawMessage {
	return json.RawMessage(plainjson.MarshalString(KnownMarketplace{MarketplaceSource{"directory", dir}, dir, updated.UTC().Format("2006-01-02T15:04:05.000Z")}))
}

// SaveNewMarketplaces adds marketplaces to the file of known marketplaces in marketplacesDir, unless they are already known or their
// directories contain no manifest. The real CLI does this in the background, so this session's plugins stay the same. Errors are ignored.
func SaveNewMarketplaces(marketplacesDir string, dirByName map[string]string, now time.Time) {
	if len(dirByName) == 0 {
		return // most sessions: they need not read the file
	}
	file := filepath.Join(marketplacesDir, KnownMarketplacesFile)
	known, err := plainjson.ReadFileOrEmpty(file)
	isNew := false
	for _, name := range slices.Sorted(maps.Keys(dirByName)) {
		dir := dirByName[name]
		if _, notFound := os.Stat(filepath.Join(dir, filepath.FromSlash(MarketplaceManifestFile))); err == nil && notFound == nil && known.Get(name) == nil {
			known, isNew = known.Set(name, NewKnownMarketplace(dir, now)), true
		}
	}
	if isNew {
		_ = known.WriteFileAtomically(file, "", 0o600)
	}
}

func (l *loader) readEnabledPlugins(o Options) {
	var known map[string]KnownMarketplace
	for _, id := range o.Enabled {
		name, shop, _ := strings.Cut(id, "@")
		var entries struct {
			Plugins []struct {
				Name   string `json:"name"`
				Source any    `json:"source"`
			} `json:"plugins"`
		}
		if !readJSONFile(o.Open(o.Marketplaces), KnownMarketplacesFile, &known) || known[shop].Dir == "" ||
			!readJSONFile(o.Open(known[shop].Dir), MarketplaceManifestFile, &entries) {
			continue
		}
		for _, entry := range entries.Plugins {
			if source, _ := entry.Source.(string); entry.Name == name && filepath.IsLocal(source) {
				dir := filepath.Join(known[shop].Dir, source)
				l.readPlugin(o.Open(dir), dir, id)
			}
		}
	}
}

func readJSONFile(tree fs.FS, file string, value any) (ok bool) {
	data, err := fs.ReadFile(tree, file)
	return err == nil && json.Unmarshal(data, value) == nil
}

// mayBePluginCollection reports whether tree may be a directory of plugins: it exists and contains no parts of a plugin.
func mayBePluginCollection(tree fs.FS) bool {
	parts := []string{pluginManifestFile, "commands", "agents", "skills", "hooks", "output-styles", ".mcp.json"}
	return fileExists(tree, ".") && !slices.ContainsFunc(parts, func(part string) bool { return fileExists(tree, part) })
}

func fileExists(tree fs.FS, name string) bool {
	_, err := fs.Stat(tree, name)
	return err == nil
}

// readPlugin reads the directory of one plugin. Errors mention its id, which is "name@marketplace" for an installed plugin.
func (l *loader) readPlugin(tree fs.FS, dir, id string) {
	fail := func(kind, message string) {
		l.catalog.pluginErrors = append(l.catalog.pluginErrors, protocol.PluginError{Plugin: id, Type: kind, Message: message, Path: dir})
	}
	if !fileExists(tree, ".") {
		fail("path-not-found", "Path not found: "+dir)
		return
	}
	m := pluginManifest{Name: filepath.Base(dir)}
	if data, err := fs.ReadFile(tree, pluginManifestFile); err == nil {
		invalid := func(kind, fault string) {
			fail("generic-error", fmt.Sprintf("Failed to load plugin: Plugin %s has %s manifest file at %s. %s", m.Name, kind, filepath.Join(dir, pluginManifestFile), fault))
		}
		if err := plainjson.SyntaxError(data); err != nil {
			invalid("a corrupt", "JSON parse error: "+err.Error())
			return
		}
		given := pluginManifest{}
		if err := json.Unmarshal(data, &given); err != nil {
			invalid("an invalid", "Validation errors: "+err.Error())
			return
		}
		if given.Name == "" {
			invalid("an invalid", "Validation errors: name: Invalid input: expected string, received undefined")
			return
		}
		m = given
	}
	if !strings.Contains(id, "@") {
		id = m.Name + "@inline"
	}
	l.catalog.plugins = append(l.catalog.plugins, protocol.Plugin{Name: m.Name, Path: dir, Source: id, Version: m.Version})
	l.parts = append(l.parts, PluginParts{
		Name: m.Name, Dir: dir, ID: id,
		Hooks:   readPluginObject(tree, dir, "hooks", m.Hooks, "hooks/hooks.json"),
		Servers: readPluginObject(tree, dir, "mcpServers", m.Servers, ".mcp.json"),
	})
	l.pluginDir, l.namePrefix = dir, m.Name+":"
	for _, folder := range customizationFolders {
		l.readFolder(tree, folder, dir, pluginSource)
	}
	l.pluginDir, l.namePrefix = "", ""
}

// readPluginObject returns the object that a plugin declares for a key; nil means none. The manifest has the object itself,
// or the name of a file that contains it. If the manifest has neither, the object is read from the default file.
func readPluginObject(tree fs.FS, pluginDir, key string, manifestValue json.RawMessage, defaultFile string) json.RawMessage {
	if manifestValue = bytes.TrimSpace(manifestValue); len(manifestValue) > 0 && manifestValue[0] == '{' {
		return expandPluginRoot(manifestValue, pluginDir)
	}
	var name string
	if json.Unmarshal(manifestValue, &name) == nil && name != "" {
		defaultFile = path.Clean(name)
	}
	data, err := fs.ReadFile(tree, defaultFile)
	var outer map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &outer) != nil {
		return nil
	}
	if inner, ok := outer[key]; ok {
		return expandPluginRoot(inner, pluginDir)
	}
	return expandPluginRoot(data, pluginDir)
}

func expandPluginRoot(raw []byte, dir string) json.RawMessage {
	quoted, err := protocol.Marshal(dir)
	if err != nil {
		return raw
	}
	return bytes.ReplaceAll(raw, []byte(pluginRootVariable), quoted[1:len(quoted)-1])
}

func (l *loader) expandPluginRootVariable(text string) string {
	if l.pluginDir == "" {
		return text
	}
	return strings.ReplaceAll(text, pluginRootVariable, l.pluginDir)
}
